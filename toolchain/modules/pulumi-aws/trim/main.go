// Command trim copies the upstream AWS provider and the Terraform plugin SDK into the build folder, as the folders
// upstream/ and plugin-sdk/ that ../go.mod names, and changes four things in the copies:
//
//   - services: only those of types.json remain. With all 260 of them the build needs an hour and 20 GB.
//   - waits: RENTBLOCK_AWS_WAIT_PERCENT scales them, so that a rehearsal does not sleep for minutes.
//   - default tags: they are inputs of each resource, as in pulumi-aws (../default_tags.go).
//   - tests, documentation and examples are left out.
//
// Usage, in this folder: go run . ..
//
// Every edit names the text that it replaces and fails if that text is not there, so that a new upstream version cannot
// lose an edit silently.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// module is a Go module that is copied. The checksum is the one that Go's checksum database has for this version: go.sum
// cannot hold it, because go.mod replaces the module by a folder.
type module struct{ path, version, sum string }

var (
	provider = module{
		path:    "github.com/upbound/terraform-provider-aws",
		version: "v0.0.0-20260305123303-f7691456b787", // HashiCorp's 6.34.0
		sum:     "h1:dJlp2eNgY/iVKTPINdguYlHbHc9CtXBZKmQmqYq0REs=",
	}
	pluginSDK = module{
		path:    "github.com/pulumi/terraform-plugin-sdk/v2",
		version: "v2.0.0-20250923233607-7f1981c8674a", // The one that the bridge's own go.mod names.
		sum:     "h1:bTwou+tt2fyfuuCp9+VQOlgEJk/xKEaYeoX2HCtp2es=",
	}
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run . BUILD_FOLDER")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "trim:", err)
		os.Exit(1)
	}
}

func run(build string) error {
	services, err := servicesInUse(filepath.Join(build, "types.json"))
	if err != nil {
		return err
	}
	source, err := provider.download()
	if err != nil {
		return err
	}
	if err := copyProvider(source, filepath.Join(build, "upstream"), services); err != nil {
		return err
	}
	if source, err = pluginSDK.download(); err != nil {
		return err
	}
	if err := copyFolder(source, filepath.Join(build, "plugin-sdk")); err != nil {
		return err
	}
	for name, edits := range edits {
		if err := editFile(filepath.Join(build, name), edits); err != nil {
			return err
		}
	}
	return nil
}

// servicesInUse gives the folder names below internal/service whose types the table names.
func servicesInUse(table string) (map[string]bool, error) {
	text, err := os.ReadFile(table)
	if err != nil {
		return nil, err
	}
	var rows struct {
		Resources, Functions map[string]struct{ Service string }
	}
	if err := json.Unmarshal(text, &rows); err != nil {
		return nil, fmt.Errorf("%s: %w", table, err)
	}
	services := map[string]bool{}
	for _, row := range rows.Resources {
		services[row.Service] = true
	}
	for _, row := range rows.Functions {
		services[row.Service] = true
	}
	return services, nil
}

// download gives the module's folder in Go's module cache and checks that it holds the pinned content.
func (m module) download() (string, error) {
	output, err := exec.Command("go", "mod", "download", "-json", m.path+"@"+m.version).Output()
	var found struct{ Dir, Sum, Error string }
	if parse := json.Unmarshal(output, &found); parse != nil {
		return "", fmt.Errorf("go mod download %s: %w", m.path, errors.Join(err, parse))
	}
	if err != nil || found.Error != "" {
		return "", fmt.Errorf("go mod download %s: %s", m.path, found.Error)
	}
	if found.Sum != m.sum {
		return "", fmt.Errorf("%s@%s has the checksum %s, and %s is pinned", m.path, m.version, found.Sum, m.sum)
	}
	return found.Dir, nil
}

// copyFolder copies what a build reads of a folder and of those below it.
func copyFolder(source, target string) error {
	return filepath.WalkDir(source, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !wanted(path) {
			return err
		}
		relative, err := filepath.Rel(source, path)
		if err != nil {
			return err
		}
		return copyFile(path, filepath.Join(target, relative))
	})
}

// wanted tells whether a build reads the file: Go code, go.mod, and what a package embeds.
func wanted(path string) bool {
	for _, folder := range []string{"testdata", "test-fixtures"} {
		if strings.Contains(path, "/"+folder+"/") {
			return false
		}
	}
	return !strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(path, ".md")
}

func copyFile(source, target string) error {
	text, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	return os.WriteFile(target, text, 0o644)
}

// edit replaces every occurrence of a text in a file.
type edit struct{ old, new string }

func editFile(name string, edits []edit) error {
	raw, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	text := string(raw)
	for _, e := range edits {
		if !strings.Contains(text, e.old) {
			return fmt.Errorf("%s does not contain %q: adapt trim to this version", name, e.old)
		}
		text = strings.ReplaceAll(text, e.old, e.new)
	}
	return os.WriteFile(name, []byte(text), 0o644)
}

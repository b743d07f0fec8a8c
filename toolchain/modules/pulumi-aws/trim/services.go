package main

import (
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	// The provider calls itself by this path in its own go.mod.
	providerPath = "github.com/hashicorp/terraform-provider-aws"
	servicePath  = "github.com/aws/aws-sdk-go-v2/service/"

	listFile    = "internal/provider/sdkv2/service_packages_gen.go"
	clientsFile = "internal/conns/awsclient_gen.go"
)

// A call of one of the client's methods, such as client.EC2Client(ctx).
var clientCall = regexp.MustCompile(`\.(\w+Client)\(ctx`)

// reach is what the services in use need of the provider.
type reach struct {
	clients map[string]bool // names of the client methods that are called
	sdks    map[string]bool // services of the AWS SDK that are imported
}

// copyProvider copies the packages that the services in use need, and cuts the two generated files that name all services.
func copyProvider(source, target string, services map[string]bool) error {
	reached := reach{clients: map[string]bool{}, sdks: map[string]bool{}}
	seen := map[string]bool{}
	queue := []string{"xpprovider"}
	for service := range services {
		queue = append(queue, "internal/service/"+service)
	}
	for len(queue) > 0 {
		folder := queue[0]
		queue = queue[1:]
		if seen[folder] {
			continue
		}
		seen[folder] = true
		imports, err := copyPackage(source, target, folder, services, reached)
		if err != nil {
			return err
		}
		queue = append(queue, imports...)
	}
	if err := cutClients(filepath.Join(source, clientsFile), filepath.Join(target, clientsFile), reached); err != nil {
		return err
	}
	return cutRequirements(filepath.Join(source, "go.mod"), filepath.Join(target, "go.mod"), reached.sdks)
}

// copyPackage copies one folder, without its subfolders that hold Go packages, and gives the folders that it imports.
func copyPackage(source, target, folder string, services map[string]bool, reached reach) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(source, folder))
	if err != nil {
		return nil, err
	}
	var imports []string
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		from, to := filepath.Join(source, path), filepath.Join(target, path)
		switch {
		case entry.IsDir():
			err = copyEmbedded(from, to)
		case path == clientsFile || !wanted(path):
			// Written by cutClients.
		case path == listFile:
			err = cutServices(from, to, services)
		default:
			err = copyFile(from, to)
		}
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(path, ".go") && path != clientsFile && wanted(path) && !entry.IsDir() {
			own, err := readImports(to, reached)
			if err != nil {
				return nil, err
			}
			imports = append(imports, own...)
		}
	}
	return imports, nil
}

// copyEmbedded copies the files below a package that it may embed, such as internal/service/ec2/smarterr.hcl.
func copyEmbedded(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !wanted(path) || strings.HasSuffix(path, ".go") {
			return err
		}
		return copyFile(path, to+strings.TrimPrefix(path, from))
	})
}

// readImports adds what a file calls and imports to `reached`, and gives the provider's own folders that it imports.
func readImports(file string, reached reach) ([]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for _, match := range clientCall.FindAllSubmatch(text, -1) {
		reached.clients[string(match[1])] = true
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	var own []string
	for _, imported := range parsed.Imports {
		path, err := strconv.Unquote(imported.Path.Value)
		if err != nil {
			return nil, err
		}
		if folder, ok := strings.CutPrefix(path, providerPath+"/"); ok {
			own = append(own, folder)
		}
		if service, ok := strings.CutPrefix(path, servicePath); ok {
			reached.sdks[strings.Split(service, "/")[0]] = true
		}
	}
	return own, nil
}

// cutServices removes the lines that name a service not in use.
func cutServices(source, target string, services map[string]bool) error {
	imported := regexp.MustCompile(`^\t"` + providerPath + `/internal/service/(\w+)"$`)
	listed := regexp.MustCompile(`^\t\t(\w+)\.ServicePackage\(ctx\),$`)
	return filterLines(source, target, func(line string) bool {
		for _, form := range []*regexp.Regexp{imported, listed} {
			if match := form.FindStringSubmatch(line); match != nil {
				return services[match[1]]
			}
		}
		return true
	})
}

// cutRequirements removes the AWS services from go.mod that no package imports: otherwise Go asks for each of them.
func cutRequirements(source, target string, sdks map[string]bool) error {
	required := regexp.MustCompile(`^\t` + servicePath + `(\w+) v`)
	return filterLines(source, target, func(line string) bool {
		match := required.FindStringSubmatch(line)
		return match == nil || sdks[match[1]]
	})
}

func filterLines(source, target string, keep func(string) bool) error {
	raw, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	lines := slices.DeleteFunc(strings.Split(string(raw), "\n"), func(line string) bool { return !keep(line) })
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	return os.WriteFile(target, []byte(strings.Join(lines, "\n")), 0o644)
}

// cutClients removes the client methods that no package calls, and the imports that only they need.
func cutClients(source, target string, reached reach) error {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, source, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	parsed.Decls = slices.DeleteFunc(parsed.Decls, func(declaration ast.Decl) bool {
		method, ok := declaration.(*ast.FuncDecl)
		return ok && strings.HasSuffix(method.Name.Name, "Client") && !reached.clients[method.Name.Name]
	})
	used := map[string]bool{}
	ast.Inspect(parsed, func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok {
			if name, ok := selector.X.(*ast.Ident); ok {
				used[name.Name] = true
			}
		}
		return true
	})
	imports := parsed.Decls[0].(*ast.GenDecl)
	imports.Specs = slices.DeleteFunc(imports.Specs, func(spec ast.Spec) bool {
		path, _ := strconv.Unquote(spec.(*ast.ImportSpec).Path.Value)
		name := path[strings.LastIndex(path, "/")+1:]
		if spec.(*ast.ImportSpec).Name != nil {
			name = spec.(*ast.ImportSpec).Name.Name
		}
		if used[name] {
			if service, ok := strings.CutPrefix(path, servicePath); ok {
				reached.sdks[service] = true
			}
		}
		return !used[name]
	})
	var text strings.Builder
	// Without the comments, whose positions are those of the removed methods.
	if err := printer.Fprint(&text, set, &ast.File{Name: parsed.Name, Decls: parsed.Decls}); err != nil {
		return err
	}
	return os.WriteFile(target, []byte(text.String()), 0o644)
}

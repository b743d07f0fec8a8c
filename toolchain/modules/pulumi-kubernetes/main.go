// pulumi-resource-kubernetes, built from the provider's Go module.
//
// The module's own command embeds files that its Makefile generates and that a Go module zip does not hold. This one
// embeds schema.json, which toolchain/build.py writes beside it (in the build folder, never in the repository) from the
// module's own schema with the version filled in. The Terraform mapping is left empty: only `pulumi convert` reads it.
package main

import (
	_ "embed"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/version"
)

//go:embed schema.json
var schema []byte

func main() {
	provider.Serve("kubernetes", version.Version, schema, []byte("{}"))
}

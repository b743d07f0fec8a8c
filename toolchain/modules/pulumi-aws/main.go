// pulumi-resource-aws: the upstream Terraform AWS provider behind Pulumi's Terraform bridge, for the types of types.json.
//
// This is the provider of a rehearsal. Resource code, validation, defaults, waits and the AWS SDK are the same as in the
// vendor's pulumi-aws, which is built in the same way from a later upstream version. Two things are ours: fewer types, and
// the setting RENTBLOCK_AWS_WAIT_PERCENT (trim/waits.go).
//
// `pulumi-resource-aws --schema` prints the Pulumi schema, which tests compare with the installed pulumi_aws package.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-provider-aws/xpprovider"
	pf "github.com/pulumi/pulumi-terraform-bridge/v3/pkg/pf/tfbridge"
	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfbridge"
	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfgen"
	shim "github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfshim/sdk-v2"
	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/x/muxer"
	"github.com/pulumi/pulumi-terraform-bridge/v3/unstable/metadata"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag/colors"
)

// version is set by the linker to the pinned version of pulumi-aws, whose package the program imports.
var version = "0.0.0"

func main() {
	if len(os.Args) == 2 && os.Args[1] == "-version" {
		fmt.Println(version) // Without the 0.3 s that the provider's tables take.
		return
	}
	ctx := context.Background()
	info, err := providerInfo(ctx)
	exitOn(err)
	schema, err := schemaOf(info)
	exitOn(err)
	if len(os.Args) == 2 && os.Args[1] == "--schema" {
		os.Stdout.Write(schema)
		return
	}
	exitOn(resolve(&info))
	pf.MainWithMuxer(ctx, "aws", info, schema)
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "pulumi-resource-aws:", err)
		os.Exit(1)
	}
}

// providerInfo reads the upstream provider and maps the types of the table to Pulumi tokens.
func providerInfo(ctx context.Context) (tfbridge.ProviderInfo, error) {
	framework, sdk, err := xpprovider.GetProvider(ctx)
	if err != nil {
		return tfbridge.ProviderInfo{}, err
	}
	sdk.DataSourcesMap[capacityBlock] = capacityBlockReservation()
	dropUnmapped(sdk.ResourcesMap, table.Resources)
	dropUnmapped(sdk.DataSourcesMap, table.Functions)
	info := tfbridge.ProviderInfo{
		P:            pf.MuxShimWithDisjointgPF(ctx, shim.NewProvider(sdk), mappedOnly{framework.(provider.ProviderWithMetaSchema)}),
		Name:         "aws",
		Version:      version,
		Resources:    resources(sdk.ResourcesMap),
		DataSources:  dataSources(),
		MetadataInfo: tfbridge.NewProviderMetadata([]byte("{}")),

		EnableAccurateBridgePreview: true,
	}
	info.SetAutonaming(255, "-")
	return info, nil
}

func dropUnmapped[T any](types map[string]T, mapped map[string]row) {
	for name := range types {
		if _, ok := mapped[name]; !ok {
			delete(types, name)
		}
	}
}

// mappedOnly is the framework half of the provider with the types of the table only. Upstream's resources read the
// provider's metadata in every plan, so the optional interface for it must remain.
type mappedOnly struct {
	provider.ProviderWithMetaSchema
}

func (p mappedOnly) Resources(ctx context.Context) []func() resource.Resource {
	return slices.DeleteFunc(p.ProviderWithMetaSchema.Resources(ctx), func(create func() resource.Resource) bool {
		var answer resource.MetadataResponse
		create().Metadata(ctx, resource.MetadataRequest{ProviderTypeName: "aws"}, &answer)
		_, mapped := table.Resources[answer.TypeName]
		return !mapped
	})
}

func (p mappedOnly) DataSources(ctx context.Context) []func() datasource.DataSource {
	return slices.DeleteFunc(p.ProviderWithMetaSchema.DataSources(ctx), func(create func() datasource.DataSource) bool {
		var answer datasource.MetadataResponse
		create().Metadata(ctx, datasource.MetadataRequest{ProviderTypeName: "aws"}, &answer)
		_, mapped := table.Functions[answer.TypeName]
		return !mapped
	})
}

// schemaOf makes the Pulumi schema, without documentation: that needs the upstream repository.
func schemaOf(info tfbridge.ProviderInfo) ([]byte, error) {
	var messages bytes.Buffer
	sink := diag.DefaultSink(io.Discard, &messages, diag.FormatOptions{Color: colors.Never})
	generated, err := tfgen.GenerateSchemaWithOptions(tfgen.GenerateSchemaOptions{
		ProviderInfo:    info,
		DiagnosticsSink: sink,
		XInMemoryDocs:   true,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, messages.String())
	}
	return json.Marshal(generated.PackageSpec)
}

// resolve tells the muxer which half of the provider, SDK or framework, serves which type.
func resolve(info *tfbridge.ProviderInfo) error {
	muxed := info.P.(interface {
		ResolveDispatch(*tfbridge.ProviderInfo) (muxer.DispatchTable, error)
	})
	dispatch, err := muxed.ResolveDispatch(info)
	if err != nil {
		return err
	}
	return metadata.Set((*metadata.Data)(info.GetMetadata()), "mux", dispatch)
}

package main

import (
	_ "embed"
	"encoding/json"
	"maps"
	"strings"
	"unicode"

	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfbridge"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// row names a type: the upstream folder that has it (trim reads that), and module and name of its Pulumi token.
type row struct{ Service, Module, Name string }

//go:embed types.json
var typesJSON []byte

// table holds the types by their Terraform names. To add a type, add a row to types.json.
var table = func() (read struct{ Resources, Functions map[string]row }) {
	if err := json.Unmarshal(typesJSON, &read); err != nil {
		panic(err)
	}
	return read
}()

// fields holds the names and shapes of pulumi-aws that the bridge's own rules would choose otherwise.
var fields = map[string]map[string]*tfbridge.SchemaInfo{
	"aws_eks_cluster": {
		"certificate_authority": {Name: "certificateAuthority", MaxItemsOne: tfbridge.True()},
	},
	"aws_eks_node_group": {
		"node_group_name": tfbridge.AutoName("nodeGroupName", 255, "-"),
	},
}

// resources maps the resource types. `sdk` has those of the provider's SDK half.
func resources(sdk map[string]*schema.Resource) map[string]*tfbridge.ResourceInfo {
	mapped := map[string]*tfbridge.ResourceInfo{}
	for name, row := range table.Resources {
		info := &tfbridge.ResourceInfo{
			Tok:    tokens.Type("aws:" + row.Module + "/" + lowerFirst(row.Name) + ":" + row.Name),
			Fields: map[string]*tfbridge.SchemaInfo{},
		}
		upstream, ofSDK := sdk[name]
		if !ofSDK || upstream.SchemaMap()["tags"] != nil {
			// Of the framework half only types with tags are in the table.
			info.PreCheckCallback = addDefaultTags
		}
		if ofSDK && upstream.SchemaMap()["tags_all"] != nil {
			info.Fields["tags_all"] = &tfbridge.SchemaInfo{
				MarkAsComputedOnly: tfbridge.True(), MarkAsOptional: tfbridge.False(),
			}
			info.TransformOutputs = hideTagsAll
		}
		maps.Copy(info.Fields, fields[name])
		mapped[name] = info
	}
	return mapped
}

func dataSources() map[string]*tfbridge.DataSourceInfo {
	mapped := map[string]*tfbridge.DataSourceInfo{}
	for name, row := range table.Functions {
		mapped[name] = &tfbridge.DataSourceInfo{Tok: tokens.ModuleMember("aws:" + row.Module + "/" + row.Name + ":" + row.Name)}
	}
	mapped[capacityBlock].Fields = capacityBlockFields
	return mapped
}

func lowerFirst(name string) string {
	first := []rune(name)[0]
	return string(unicode.ToLower(first)) + strings.TrimPrefix(name, string(first))
}

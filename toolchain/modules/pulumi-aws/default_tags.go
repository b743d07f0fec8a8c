package main

import (
	"context"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// addDefaultTags adds the provider's default tags to a resource's own tags, which win. pulumi-aws does the same: its
// default tags are inputs of every resource, so that a preview shows them. (In Terraform they appear in tags_all only.)
func addDefaultTags(_ context.Context, inputs, config resource.PropertyMap) (resource.PropertyMap, error) {
	defaults, secret := open(config["defaultTags"])
	if !defaults.IsObject() {
		return inputs, nil
	}
	tags, secretTags := open(defaults.ObjectValue()["tags"])
	if !tags.IsObject() {
		return inputs, nil
	}
	own, secretOwn := open(inputs["tags"])
	if own.IsComputed() || own.IsOutput() {
		return inputs, nil
	}
	merged := tags.ObjectValue().Copy()
	if own.IsObject() {
		for key, value := range own.ObjectValue() {
			merged[key] = value
		}
	}
	result := inputs.Copy()
	result["tags"] = resource.NewObjectProperty(merged)
	if secret || secretTags || secretOwn {
		result["tags"] = resource.MakeSecret(result["tags"])
	}
	return result, nil
}

// hideTagsAll makes tagsAll secret: it repeats the values of tags, which may be secret, and the bridge cannot know that.
func hideTagsAll(_ context.Context, outputs resource.PropertyMap) (resource.PropertyMap, error) {
	if tags, ok := outputs["tagsAll"]; ok && !tags.IsSecret() {
		outputs = outputs.Copy()
		outputs["tagsAll"] = resource.MakeSecret(tags)
	}
	return outputs, nil
}

// open gives the value inside a secret, and whether it was one.
func open(value resource.PropertyValue) (resource.PropertyValue, bool) {
	if value.IsSecret() {
		return value.SecretValue().Element, true
	}
	if value.IsOutput() && value.OutputValue().Known {
		return value.OutputValue().Element, value.OutputValue().Secret
	}
	return value, false
}

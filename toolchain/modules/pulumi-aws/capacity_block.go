package main

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/hashicorp/terraform-provider-aws/xpprovider"
	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfbridge"
)

// capacityBlock is a data source that upstream has since 6.47 and the version built here lacks. Its names and shapes are
// those of pulumi-aws, read from the installed package.
const capacityBlock = "aws_ec2_capacity_block_reservation"

var (
	capacityBlockTexts = []string{
		"arn", "availability_zone", "availability_zone_id", "capacity_block_id", "created_date", "delivery_preference",
		"end_date", "end_date_type", "instance_match_criteria", "instance_platform", "instance_type", "outpost_arn",
		"owner_id", "placement_group_arn", "reservation_type", "start_date", "state", "tenancy",
	}
	capacityBlockNumbers = []string{"available_instance_count", "instance_count"}
)

// capacityBlockFields: the shapes that the bridge cannot see in a computed list.
var capacityBlockFields = map[string]*tfbridge.SchemaInfo{
	"commitment_info":                   {MaxItemsOne: tfbridge.True()},
	"interruptible_capacity_allocation": {MaxItemsOne: tfbridge.True()},
	"interruption_info":                 {MaxItemsOne: tfbridge.True()},
}

func capacityBlockReservation() *schema.Resource {
	fields := map[string]*schema.Schema{
		"id":     {Type: schema.TypeString, Optional: true, Computed: true},
		"region": {Type: schema.TypeString, Optional: true, Computed: true},
		"filter": {Type: schema.TypeSet, Optional: true, Elem: &schema.Resource{Schema: map[string]*schema.Schema{
			"name":   {Type: schema.TypeString, Required: true},
			"values": {Type: schema.TypeList, Required: true, Elem: text()},
		}}},
		"ebs_optimized":   {Type: schema.TypeBool, Computed: true},
		"tags":            {Type: schema.TypeMap, Computed: true, Elem: text()},
		"commitment_info": group(map[string]schema.ValueType{"commitment_end_date": schema.TypeString, "committed_instance_count": schema.TypeInt}),
		"interruptible_capacity_allocation": group(map[string]schema.ValueType{
			"instance_count": schema.TypeInt, "interruptible_capacity_reservation_id": schema.TypeString,
			"interruption_type": schema.TypeString, "status": schema.TypeString, "target_instance_count": schema.TypeInt,
		}),
		"interruption_info": group(map[string]schema.ValueType{
			"interruption_type": schema.TypeString, "source_capacity_reservation_id": schema.TypeString,
		}),
	}
	for _, name := range capacityBlockTexts {
		fields[name] = &schema.Schema{Type: schema.TypeString, Computed: true}
	}
	for _, name := range capacityBlockNumbers {
		fields[name] = &schema.Schema{Type: schema.TypeInt, Computed: true}
	}
	return &schema.Resource{ReadContext: readCapacityBlock, Schema: fields}
}

func text() *schema.Schema { return &schema.Schema{Type: schema.TypeString} }

func group(members map[string]schema.ValueType) *schema.Schema {
	fields := map[string]*schema.Schema{}
	for name, kind := range members {
		fields[name] = &schema.Schema{Type: kind, Computed: true}
	}
	return &schema.Schema{Type: schema.TypeList, Computed: true, Elem: &schema.Resource{Schema: fields}}
}

func readCapacityBlock(ctx context.Context, data *schema.ResourceData, meta any) diag.Diagnostics {
	config := meta.(*xpprovider.AWSClient).AwsConfig(ctx)
	if region, ok := data.GetOk("region"); ok {
		config.Region = region.(string)
	}
	input := &ec2.DescribeCapacityReservationsInput{}
	if id, ok := data.GetOk("id"); ok {
		input.CapacityReservationIds = []string{id.(string)}
	}
	for _, each := range data.Get("filter").(*schema.Set).List() {
		filter := each.(map[string]any)
		var values []string
		for _, value := range filter["values"].([]any) {
			values = append(values, value.(string))
		}
		input.Filters = append(input.Filters, types.Filter{Name: aws.String(filter["name"].(string)), Values: values})
	}
	found, err := capacityBlocks(ctx, ec2.NewFromConfig(config), input)
	switch {
	case err != nil:
		return diag.Errorf("reading EC2 Capacity Block Reservation: %s", err)
	case len(found) != 1:
		return diag.Errorf("reading EC2 Capacity Block Reservation: %d reservations match, and there must be exactly one", len(found))
	}
	data.SetId(aws.ToString(found[0].CapacityReservationId))
	values := attributes(found[0])
	values["region"] = config.Region
	for name, value := range values {
		if err := data.Set(name, value); err != nil {
			return diag.FromErr(err)
		}
	}
	return nil
}

func capacityBlocks(
	ctx context.Context, client *ec2.Client, input *ec2.DescribeCapacityReservationsInput,
) ([]types.CapacityReservation, error) {
	var found []types.CapacityReservation
	pages := ec2.NewDescribeCapacityReservationsPaginator(client, input)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, one := range page.CapacityReservations {
			if one.ReservationType == types.CapacityReservationTypeCapacityBlock {
				found = append(found, one)
			}
		}
	}
	return found, nil
}

func attributes(block types.CapacityReservation) map[string]any {
	tags := map[string]string{}
	for _, tag := range block.Tags {
		tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	values := map[string]any{
		"arn":                     aws.ToString(block.CapacityReservationArn),
		"availability_zone":       aws.ToString(block.AvailabilityZone),
		"availability_zone_id":    aws.ToString(block.AvailabilityZoneId),
		"capacity_block_id":       aws.ToString(block.CapacityBlockId),
		"created_date":            moment(block.CreateDate),
		"delivery_preference":     string(block.DeliveryPreference),
		"ebs_optimized":           aws.ToBool(block.EbsOptimized),
		"end_date":                moment(block.EndDate),
		"end_date_type":           string(block.EndDateType),
		"instance_match_criteria": string(block.InstanceMatchCriteria),
		"instance_platform":       string(block.InstancePlatform),
		"instance_type":           aws.ToString(block.InstanceType),
		"outpost_arn":             aws.ToString(block.OutpostArn),
		"owner_id":                aws.ToString(block.OwnerId),
		"placement_group_arn":     aws.ToString(block.PlacementGroupArn),
		"reservation_type":        string(block.ReservationType),
		"start_date":              moment(block.StartDate),
		"state":                   string(block.State),
		"tags":                    tags,
		"tenancy":                 string(block.Tenancy),
	}
	if block.TotalInstanceCount != nil {
		values["instance_count"] = *block.TotalInstanceCount
	}
	if block.AvailableInstanceCount != nil {
		values["available_instance_count"] = *block.AvailableInstanceCount
	}
	return values
}

func moment(when *time.Time) string {
	if when == nil {
		return ""
	}
	return when.UTC().Format(time.RFC3339)
}

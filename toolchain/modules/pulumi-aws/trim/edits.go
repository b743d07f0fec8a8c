package main

// scaled is added to both files that sleep. A provider's process serves one engine, so the setting is read once.
//
// A wait never shrinks below 5 ms, so that a loop does not flood the simulated AWS. A time limit never shrinks below 30 s:
// the requests between two waits take real time, and on a busy machine many times what they take on an idle one.
const scaled = `
var waitPercent = func() time.Duration {
	percent, err := strconv.Atoi(os.Getenv("RENTBLOCK_AWS_WAIT_PERCENT"))
	if err != nil || percent < 0 || percent > 100 {
		return 100
	}
	return time.Duration(percent)
}()

func scaledWait(d time.Duration) time.Duration {
	return min(d, max(d*waitPercent/100, 5*time.Millisecond))
}

func scaledLimit(d time.Duration) time.Duration {
	return min(d, max(d*waitPercent/100, 30*time.Second))
}
`

// edits are the changes of the copies, by file. All waits of the provider go through the first two files.
var edits = map[string][]edit{
	"upstream/internal/backoff/backoff.go": {
		{"\t\"context\"\n\t\"time\"\n", "\t\"context\"\n\t\"os\"\n\t\"strconv\"\n\t\"time\"\n"},
		{"\treturn time.After(d)\n", "\treturn time.After(scaledWait(d))\n"},
		{"inttypes.NewDeadline(timeout)", "inttypes.NewDeadline(scaledLimit(timeout))"},
		{"\n// Timer represents", scaled + "\n// Timer represents"},
	},
	"plugin-sdk/helper/retry/state.go": {
		{"\t\"log\"\n\t\"time\"\n", "\t\"log\"\n\t\"os\"\n\t\"strconv\"\n\t\"time\"\n"},
		{"time.After(conf.Delay)", "time.After(scaledWait(conf.Delay))"},
		{"time.After(wait)", "time.After(scaledWait(wait))"},
		{"time.After(conf.Timeout)", "time.After(scaledLimit(conf.Timeout))"},
		{"\nvar refreshGracePeriod", scaled + "\nvar refreshGracePeriod"},
	},
	// Default tags reach each resource as inputs. Were they default tags of the upstream provider too, a refresh would
	// remove them from `tags`.
	"upstream/internal/provider/sdkv2/provider.go": {
		{"\tif len(tags) > 0 {\n\t\treturn &tftags.DefaultConfig{", "\tif false {\n\t\treturn &tftags.DefaultConfig{"},
	},
}

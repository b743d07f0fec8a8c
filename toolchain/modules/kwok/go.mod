module rent-the-block/toolchain/kwok

go 1.26.6

require sigs.k8s.io/kwok v0.8.0

tool (
	sigs.k8s.io/kwok/cmd/kwok
	sigs.k8s.io/kwok/cmd/kwokctl
)

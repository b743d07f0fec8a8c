module rent-the-block/toolchain/pulumi-aws/trim

go 1.26.6

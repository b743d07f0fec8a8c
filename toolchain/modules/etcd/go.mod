module rent-the-block/toolchain/etcd

go 1.26.6

require go.etcd.io/etcd/server/v3 v3.6.16

tool go.etcd.io/etcd/server/v3

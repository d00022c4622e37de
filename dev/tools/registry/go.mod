module plexsphere.com/broker/dev/tools/registry

go 1.24

tool github.com/google/go-containerregistry/cmd/registry

require github.com/google/go-containerregistry v0.20.6 // indirect

// Package image writes the OCI image of the program, without a container daemon:
// a tar file with an OCI layout, which docker, podman, skopeo and containerd load.
//
// The image has no distribution below it: the program, the shared libraries that
// it and libonnxruntime load, the dynamic linker, certificates of authorities,
// time zones, licences and a user. There is no shell in it. The same files give
// the same digest: times are left out and entries are in order.
//
// Package image is for developers: the daemon does not import it. It takes
// libraries from the machine that it runs on, whose architecture is the image's,
// and knows nothing of registries: skopeo copies an image there.
package image

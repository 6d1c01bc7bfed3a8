// Package blob is the service of large objects: bytes under a name, in parts of any number, in
// files of a folder.
//
// An object is published as a whole or not at all: it is written to a file of its own, synced,
// and renamed. The name of a file is a hash of the object's, so no name can leave the
// folder, is too long for it, means a device, or meets another that differs in case alone.
package blob

// Package blob is the service for large objects: named bytes, sent in any number of parts and
// stored as files in a folder.
//
// An object is published as a whole or not at all: it is written to a temporary file, synced, and
// renamed. The name of a file is a hash of the object's name, so no name can leave the folder, be
// too long, mean a device, or collide with one that differs only in case.
package blob

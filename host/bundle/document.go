package bundle

import (
	"bytes"
	"errors"
	"io"
	"time"

	"go.yaml.in/yaml/v3"
)

// Document reads a YAML file that stands beside a manifest and is written as one: without
// anchors, aliases, keys that come twice, and a second document. what is how errors call it, such as
// "the scenario file". They are Diagnostics.
func Document(file string, data []byte, what string) (*yaml.Node, error) {
	c := &checker{file: file}
	var doc, second yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(data))
	err := d.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF) || err == nil && len(doc.Content) == 0:
		return nil, Diagnostics{{file, 1, 1, what + " is empty"}}
	case err != nil:
		return nil, Diagnostics{syntaxError(file, data, err)}
	}
	c.structure(doc.Content[0], 0)
	if err := d.Decode(&second); err == nil {
		c.at(&second, "a second document begins here: %s is one", what)
	} else if !errors.Is(err, io.EOF) {
		c.found = append(c.found, syntaxError(file, data, err))
	}
	if len(c.found) > 0 {
		return nil, c.found
	}
	return doc.Content[0], nil
}

// Scalar is the value of a YAML scalar as in the args of actors: !duration, !size and !count
// are read, whole numbers are int64 or uint64.
func Scalar(n *yaml.Node) (any, error) { return scalar(n) }

// ParseDuration reads a duration as manifests write it, such as 100ms, 1m30s or 0.
func ParseDuration(text string) (time.Duration, error) { return parseDuration(text) }

// Suggest is the end of an error about a name that does not exist: the name that was probably meant, or
// all valid ones.
func Suggest(name string, candidates []string) string { return suggestion(name, candidates) }

// TagName names the type of a scalar for a person.
func TagName(n *yaml.Node) string { return tagName(n) }

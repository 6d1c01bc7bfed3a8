package main

import (
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/bundle"
)

// mostDevNodes bounds the nodes of a dev.
const mostDevNodes = 9

// placeOfNode stands for the number of a node in the values of flags.
const placeOfNode = "{node}"

// Flags of dev that its nodes get otherwise, or not at all.
var (
	notOfNodes   = []string{"nodes", "again", "open", "for", "input", "allow", "admin", "state"}
	ofFirstNode  = []string{"timeout", "fail-on", "on-input-error"}
	foldersOfDev = []string{"crash-reports", "black-box"} // each node has one below
)

// checkNodes says what is wrong with the flags of a dev with nodes.
func checkNodes(c *cli.Context, nodes int) error {
	switch {
	case nodes < 1 || nodes > mostDevNodes:
		return usage("--nodes must be from 1 to %d", mostDevNodes)
	case c.IsSet("seed"):
		return usage("--seed cannot be combined with --nodes: nodes must not have the same secret")
	case c.String("admin") == "off":
		return usage("--nodes needs --admin unix: changes reach the nodes by it")
	}
	for _, name := range []string{"admin", "health"} {
		text := c.String(name)
		if _, port, err := net.SplitHostPort(strings.TrimPrefix(text, "tcp:")); err == nil && nodes > 1 && port != "0" && !strings.Contains(text, placeOfNode) {
			return usage("--%s %s: nodes of one machine need addresses of their own: %s stands for the number of the node, as in --%s %s%s", name, text, placeOfNode, name, text[:len(text)-1], placeOfNode)
		}
	}
	return nil
}

// ofNode puts the number of a node into the value of a flag.
func ofNode(text string, number int) string {
	return strings.ReplaceAll(text, placeOfNode, strconv.Itoa(number))
}

// flagsOfNode are those flags of dev that a node gets as they are.
func flagsOfNode(c *cli.Context, number int) (args []string) {
	add := func(name, value string) { args = append(args, "--"+name+"="+ofNode(value, number)) }
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		if !c.IsSet(name) || slices.Contains(notOfNodes, name) || number > 1 && slices.Contains(ofFirstNode, name) {
			continue
		}
		switch f.(type) {
		case *cli.BoolFlag:
			add(name, strconv.FormatBool(c.Bool(name)))
		case *cli.StringSliceFlag:
			for _, value := range c.StringSlice(name) {
				add(name, value)
			}
		default:
			value := c.String(name)
			if slices.Contains(foldersOfDev, name) && !strings.Contains(value, placeOfNode) {
				value = filepath.Join(value, nameOfNode(number))
			}
			add(name, value)
		}
	}
	return args
}

func nameOfNode(number int) string { return "n" + strconv.Itoa(number) }

// stateOfNode is the folder in which services of a node keep their state, "none" for none: one below that of the bundle.
func stateOfNode(c *cli.Context, m *bundle.Manifest, number int) (string, error) {
	if text := c.String("state"); strings.Contains(text, placeOfNode) {
		return filepath.Abs(ofNode(text, number))
	}
	dir, err := stateDir(c)(m)
	switch {
	case err != nil:
		return "", err
	case dir == "":
		return "none", nil
	}
	return filepath.Join(dir, "nodes", nameOfNode(number)), nil
}

// sharedAddress is an address at which two nodes would listen, and what to do about it; "": there is none. all are their manifests.
func sharedAddress(all []*bundle.Manifest) string {
	at := map[string]int{}
	for i, m := range all {
		if m.HTTP == nil {
			continue
		}
		for _, l := range m.HTTP.Config.Listen {
			if _, port, err := net.SplitHostPort(l.Address); err == nil && port == "0" {
				continue
			}
			if first, there := at[l.Address]; there {
				own := l.Address[:len(l.Address)-1] + placeOfNode
				if strings.HasPrefix(l.Address, "unix:") {
					own = l.Address + "." + placeOfNode
				}
				return "http.listen: nodes " + nameOfNode(first+1) + " and " + nameOfNode(i+1) + " would both listen at " + l.Address +
					`: write "${LISTEN:-` + l.Address + `}" into the manifest, and give each node its own by --env LISTEN=` + own
			}
			at[l.Address] = i
		}
	}
	return ""
}

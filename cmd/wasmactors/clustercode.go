package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// What a node keeps of the code of other nodes is told with its status.

// mostCodes bounds the modules that another node may tell of.
const mostCodes = 256

// codeOf is what the bundle keeps; nil: it takes no code of other nodes, or there is no bundle.
func codeOf(b *bundle.Bundle, n *cluster.Node) *admin.ClusterCode {
	if b == nil {
		return nil
	}
	all, most, ok := b.Fetched()
	if !ok {
		return nil
	}
	c := &admin.ClusterCode{Modules: []admin.ClusterModule{}, MostModules: most.Modules, MostBytes: most.Bytes, ShareModules: most.ShareModules, ShareBytes: most.ShareBytes}
	for _, x := range all {
		m, _ := n.Member(x.Node)
		c.Modules = append(c.Modules, admin.ClusterModule{Node: int(x.Node), Name: m.Name, As: x.As, SHA256: x.Digest, Bytes: x.Bytes, Children: x.Children})
	}
	return c
}

// takenCode is what another node says of it, as far as it can be shown.
func takenCode(c *admin.ClusterCode) *admin.ClusterCode {
	if c == nil {
		return nil
	}
	c.Modules = c.Modules[:min(len(c.Modules), mostCodes)]
	if c.Modules == nil {
		c.Modules = []admin.ClusterModule{}
	}
	for i := range c.Modules {
		m := &c.Modules[i]
		m.Name, m.As, m.SHA256 = printable.Line(m.Name, mostName), printable.Line(m.As, mostName), printable.Line(m.SHA256, mostName)
	}
	return c
}

// clusterCode shows it.
func (r *reached) clusterCode(c *admin.ClusterCode) error {
	if c == nil {
		return nil
	}
	bytes := int64(0)
	for _, m := range c.Modules {
		bytes += m.Bytes
	}
	text := fmt.Sprintf("code of other nodes: %d of %d modules, %d of %d bytes; each node may have %d modules and %d bytes of it\n",
		len(c.Modules), c.MostModules, bytes, c.MostBytes, c.ShareModules, c.ShareBytes)
	if err := write(r.env.stdout, text); err != nil || len(c.Modules) == 0 {
		return err
	}
	return r.table("OF\tNODE\tAS\tBYTES\tCHILDREN\tSHA-256", func(w *tabwriter.Writer) {
		for _, m := range c.Modules {
			fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%d\t%.16s\n", m.Node, orDash(oneLine(m.Name)), oneLine(m.As), m.Bytes, m.Children, oneLine(m.SHA256))
		}
	})
}

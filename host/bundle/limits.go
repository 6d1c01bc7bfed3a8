package bundle

import (
	"cmp"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/runtime"
)

// limits of an actor, with those that are the module's.
type limits struct {
	host.Limits
	stack, table uint32
}

func (c *checker) limits(v view, base limits) limits {
	l := base
	l.Memory = v.size("memory", l.Memory)
	l.Fuel = v.count("fuel", l.Fuel)
	l.Deadline = v.duration("deadline", l.Deadline)
	l.stack = uint32(v.size("stack", uint64(l.stack)))
	l.table = uint32(v.count("table", uint64(l.table)))
	l.Outbox = v.size("outbox", l.Outbox)
	l.Message = int64(v.size("message", uint64(l.Message)))
	l.Mailbox = int(v.count("mailbox", uint64(l.Mailbox)))
	l.MailboxBytes = int64(v.size("mailbox-bytes", uint64(l.MailboxBytes)))
	l.Children = int(v.count("children", uint64(l.Children)))
	l.Timers = int(v.count("timers", uint64(l.Timers)))
	l.Watches = int(v.count("watches", uint64(l.Watches)))
	l.Asks = int(v.count("asks", uint64(l.Asks)))
	l.Stash = int(v.count("stash", uint64(l.Stash)))
	l.Held = int64(v.size("held", uint64(l.Held)))
	l.Durable = int64(v.size("durable", uint64(l.Durable)))
	tree := v.object("tree")
	l.Tree = host.TreeLimits{Actors: int(tree.count("actors", 0)), Memory: int64(tree.size("memory", 0))}
	return l
}

// moduleLimits reads modules.NAME.limits.
func (c *checker) moduleLimits(v view, mod *Module) {
	mod.Size, mod.Data = v.size("size", 0), v.size("data", 0)
	mod.Globals = uint32(v.count("globals", 0))
	mod.Tables, mod.Entries = uint32(v.count("tables", 0)), uint32(v.count("table-entries", 0))
	mod.Types, mod.Functions = uint32(v.count("types", 0)), uint32(v.count("functions", 0))
	mod.Segments, mod.Elements = uint32(v.count("segments", 0)), uint32(v.count("elements", 0))
	mod.CompileSteps, mod.CompileBytes = v.count("compile-steps", 0), v.size("compile-bytes", 0)
	mod.CompileTime, mod.CompileMemory = v.duration("compile-time", 0), v.size("compile-memory", 0)
	mod.Memory, mod.Stack, mod.Table = v.size("memory", 0), uint32(v.size("stack", 0)), uint32(v.count("table", 0))
	mod.Instances = int(v.count("instances", 0))
	mod.InitFuel, mod.InitDeadline = v.count("init-fuel", 0), v.duration("init-deadline", 0)
	mod.set = shared{mod.Memory != 0, mod.Stack != 0, mod.Table != 0}
}

// shared says which of the limits that actors share were set for their module.
type shared struct{ memory, stack, table bool }

// share raises the module's limits to those of an actor, so that the largest of its actors'
// limits counts. If the module has limits of its own, an actor with a larger one is a mistake.
func (c *checker) share(m *Manifest, a *Actor, limits view) {
	for i := range m.Modules {
		mod := &m.Modules[i]
		if mod.Name != a.Module {
			continue
		}
		memory := cmp.Or(a.Limits.Memory, uint64(runtime.DefaultMemoryLimit))
		stack := cmp.Or(a.Stack, uint32(runtime.DefaultStackLimit))
		table := cmp.Or(a.Table, uint32(runtime.DefaultTableLimit))
		if !mod.set.memory {
			mod.Memory = max(mod.Memory, memory)
		} else if v := limits.get("memory"); v.given() && memory > mod.Memory {
			c.At(v.n, "limits.memory of actor %s is more than modules.%s.limits.memory", a.Name, mod.Name)
		}
		if !mod.set.stack {
			mod.Stack = max(mod.Stack, stack)
		} else if v := limits.get("stack"); v.given() && stack > mod.Stack {
			c.At(v.n, "limits.stack of actor %s is more than modules.%s.limits.stack", a.Name, mod.Name)
		}
		if !mod.set.table {
			mod.Table = max(mod.Table, table)
		} else if v := limits.get("table"); v.given() && table > mod.Table {
			c.At(v.n, "limits.table of actor %s is more than modules.%s.limits.table", a.Name, mod.Name)
		}
	}
}

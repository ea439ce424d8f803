package sis

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"msgexchange/jobs/fault"
)

// whiteSpace is what is trimmed around values (dictionary 3, rule 1).
const whiteSpace = " \t\r\n"

// node is an element of one record with everything inside it, so that the order of children does not matter.
type node struct {
	name   string
	parent *node
	above  string // path of the elements above; only where parent is nil
	nth    int    // which one it is among its like, from 1; only where parent is nil and it may repeat
	line   int
	attrs  []attr
	text   string // its own text, as a value
	kids   []*node
}

// attr is an attribute as a value; "" when it is not there.
func (n *node) attr(name string) string {
	for i := range n.attrs {
		if n.attrs[i].name == name {
			return clean([]byte(n.attrs[i].value))
		}
	}
	return ""
}

// named are the children of that name.
func (n *node) named(name string) []*node {
	var out []*node
	for _, k := range n.kids {
		if k.name == name {
			out = append(out, k)
		}
	}
	return out
}

// only is the child of that name, nil when there is none; twice is refused (contract §8.13).
func (n *node) only(name string) (*node, error) {
	var found *node
	for _, k := range n.kids {
		switch {
		case k.name != name:
		case found != nil:
			return nil, k.broken("", "it may stand only once")
		default:
			found = k
		}
	}
	return found, nil
}

// path is where the node stands: MSG/SCHD/FLTR[3]/PSDT[2]/PSST.
func (n *node) path() string {
	if n.parent == nil {
		if n.nth > 0 {
			return fmt.Sprintf("%s/%s[%d]", n.above, n.name, n.nth)
		}
		return n.above + "/" + n.name
	}
	p := n.parent.path() + "/" + n.name
	if like := n.parent.named(n.name); len(like) > 1 {
		p = fmt.Sprintf("%s[%d]", p, slices.Index(like, n)+1)
	}
	return p
}

// broken is a broken content rule at n, or at what is named below it: "SODT", "@PSNO".
func (n *node) broken(below, format string, args ...any) error {
	path := n.path()
	if below != "" {
		path += "/" + below
	}
	return fault.At(fault.Protocol, op, path, n.line, format, args...)
}

// clean makes a value of what encoding/xml gives.
func clean(text []byte) string {
	s := string(bytes.Trim(text, whiteSpace))
	if strings.IndexByte(s, '\r') >= 0 { // only character references get this far
		s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	}
	return s
}

// grove lends the nodes of one record after another, and the buffers their text grows in.
type grove struct {
	nodes [][]node // in blocks, so that a node stays where it is
	lent  int
	texts [][]byte
}

func (g *grove) lend() *node {
	const block = 8
	if g.lent == block*len(g.nodes) {
		g.nodes = append(g.nodes, make([]node, block))
	}
	n := &g.nodes[g.lent/block][g.lent%block]
	g.lent++
	*n = node{kids: n.kids[:0]}
	return n
}

// tree reads the element whose start tag was read last. What it gives is good until the next call.
// An element with too much inside is read to its end all the same, and false is returned.
func (g *grove) tree(s *scanner, start token) (root *node, whole bool, err error) {
	g.lent = 0
	base := len(s.open)
	root = g.grow(nil, start, 0, s.line())
	for at := root; ; {
		t, err := s.next()
		if err != nil {
			return nil, false, err
		}
		depth := len(s.open) - base
		switch t.kind {
		case opening:
			if g.lent == maxElements {
				return root, false, s.leave(base)
			}
			at = g.grow(at, t, depth, s.line())
		case chars:
			g.texts[depth] = append(g.texts[depth], t.text...)
		case closing:
			at.text = clean(g.texts[depth+1])
			if at == root {
				return root, true, nil
			}
			at = at.parent
		}
	}
}

// grow adds the element that was just opened below parent.
func (g *grove) grow(parent *node, start token, depth, line int) *node {
	n := g.lend()
	n.name, n.parent, n.attrs, n.line = start.name, parent, start.attrs, line
	if parent != nil {
		if parent.kids == nil {
			const usual = 8
			parent.kids = make([]*node, 0, usual)
		}
		parent.kids = append(parent.kids, n)
	}
	if depth == len(g.texts) {
		g.texts = append(g.texts, nil)
	}
	g.texts[depth] = g.texts[depth][:0]
	return n
}

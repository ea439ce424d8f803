package simulator

import "strings"

// spoil makes something of a message that is none, each time in another way (dictionary 4, #1 to #4).
func spoil(text string, n int) string {
	const head, tail = "<META>", "</META>"
	ways := []func() string{
		func() string { return text[:strings.LastIndexByte(text[:len(text)*2/3], '<')] },
		func() string { return text + "<MSG></MSG>" },
		func() string {
			return declaration + "<!DOCTYPE MSG [<!ENTITY e SYSTEM \"file:///nowhere\">]>\n" + text[len(declaration):]
		},
		func() string { return strings.Replace(text, head, head+"\x01", 1) },
		func() string { return strings.Replace(text, head, head+"&nbsp;", 1) },
		func() string { return strings.Replace(text, tail, "<SEQN>1</SEQN>"+tail, 1) },
		func() string { return " " },
	}
	return ways[n%len(ways)]()
}

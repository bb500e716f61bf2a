package taints

import "strings"

// maxMessage is the longest message of a condition or an Event, in bytes. The
// admission policies let 2 KiB pass.
const maxMessage = 2000

// Message cuts a message to what the admission policies let pass. Long paths, or
// many of them, and long keys of taints make longer ones.
func Message(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	const more = "…"
	return strings.ToValidUTF8(text[:maxMessage-len(more)], "") + more
}

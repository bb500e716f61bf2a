package ask

import (
	"strings"
	"testing"
)

// FuzzResolvConf checks that any resolv.conf gives at most three nameservers, at the port of
// DNS, and a name that a question can hold or that is refused.
func FuzzResolvConf(f *testing.F) {
	for _, text := range []string{
		"", "nameserver 10.96.0.10\nsearch default.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n",
		"nameserver fe80::1%eth0\nnameserver ::1\nnameserver 1.1.1.1\nnameserver 9.9.9.9\n", "search svc.\nnameserver 10.0.0.1 # x\n",
		"search svc.." + strings.Repeat("a", 100) + "\n", "nameserver\n;\n\x00search svc.a\r\n", "search svc." + strings.Repeat("a.", 90),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		conf := parseResolvConf(text)
		if len(conf.servers) > 3 {
			t.Errorf("%d nameservers", len(conf.servers))
		}
		for _, server := range conf.servers {
			if !server.IsValid() || server.Port() != 53 {
				t.Errorf("nameserver %v", server)
			}
		}
		if !strings.HasSuffix(conf.name, ".") {
			t.Errorf("the name %q is not absolute", conf.name)
		}
		const longest = 12 + 255 + 4 // head, name and the rest of the question (RFC 1035, 2.3.4 and 4.1)
		if packet, err := question(1, conf.name); err == nil && len(packet) > longest {
			t.Errorf("a question of %d bytes", len(packet))
		}
	})
}

package bed

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"

	"github.com/taintlet/taintlet/test/process"
)

// Host is a network namespace with what the network of a Node consists of.
type Host struct {
	*Space

	Number int
	// Name is that of its Node.
	Name    string
	Address netip.Addr

	bridged bool             // it has the bridge of its pods
	pod     *Space           // of the DNS server; nil: none here
	dns     *process.Process // the server
	open    []io.Closer
	proxyUp atomic.Bool // what the listener on kube-proxy's port answers
}

// newHost makes a host with two NICs, of which the first has a default route in a
// table of its own, as some network plugins have it.
func newHost(number int, resolvConf string) (*Host, error) {
	name := fmt.Sprintf("host-%d", number)
	space, err := newSpace(name)
	if err != nil {
		return nil, err
	}
	h := &Host{Space: space, Number: number, Name: name, Address: HostAddress(number)}
	if err := outside(
		fmt.Sprintf("link add up%d type veth peer name eth0 netns %d", number, h.tid),
		fmt.Sprintf("link set up%d master br0 up", number),
		fmt.Sprintf("link add second%d type veth peer name eth1 netns %d", number, h.tid),
		fmt.Sprintf("link set second%d master br1 up", number),
	); err != nil {
		return h, err
	}
	if err := h.IP(
		fmt.Sprintf("addr add %s/24 dev eth0", h.Address),
		"link set eth0 up",
		fmt.Sprintf("addr add 10.92.0.%d/24 dev eth1", 10+number),
		"link set eth1 up",
		"route add default via "+Gateway+" dev eth0 table 100",
		"rule add pref 40000 lookup 100",
	); err != nil {
		return h, err
	}
	if err := h.bind(resolvConf, "/etc/resolv.conf"); err != nil {
		return h, err
	}
	return h, h.Sysctl("net/ipv4/ip_forward", "1")
}

func (h *Host) close() {
	for _, open := range h.open {
		_ = open.Close()
	}
	if h.pod != nil {
		h.pod.Close()
	}
	h.Close()
}

// listenAsKubelet accepts connections on the kubelet's port, and ends them.
func (h *Host) listenAsKubelet() error {
	listener, err := h.Listen(fmt.Sprintf(":%d", KubeletPort))
	if err != nil {
		return err
	}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_ = connection.Close()
		}
	}()
	return nil
}

// listenAsProxy answers on the port where kube-proxy says how it is.
func (h *Host) listenAsProxy() error {
	listener, err := h.Listen("127.0.0.1:10256")
	if err != nil {
		return err
	}
	h.proxyUp.Store(true)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { //nolint:gosec // for tests
		if !h.proxyUp.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})}
	go server.Serve(listener) //nolint:errcheck // it ends with the listener
	return nil
}

// SetProxy makes kube-proxy say that it is well, or stuck.
func (h *Host) SetProxy(well bool) { h.proxyUp.Store(well) }

// Listen listens in the host's namespace until the bed is closed.
func (h *Host) Listen(address string) (listener net.Listener, err error) {
	err = h.Do(func() (err error) {
		listener, err = net.Listen("tcp", address) //nolint:noctx // it takes no time
		return err
	})
	if err == nil {
		h.open = append(h.open, listener)
	}
	return listener, err
}

// Break adds rules to the host's packet filter: "in", "out" or "forward" and a
// rule of nft, such as "in udp dport 53 drop". They stay until Mend of that name.
// Connections within the host are spared.
func (h *Host) Break(name string, rules ...string) error {
	chains := map[string][]string{}
	for _, rule := range rules {
		hook, rule, _ := strings.Cut(rule, " ")
		chains[hook] = append(chains[hook], rule)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "table inet fault_%s {\n", name)
	for hook, rules := range chains {
		long, spared := map[string]string{"in": "input", "out": "output", "forward": "forward"}[hook], ""
		switch hook {
		case "in":
			spared = "iifname lo accept\n"
		case "out":
			spared = "oifname lo accept\n"
		}
		fmt.Fprintf(&text, "chain %s { type filter hook %s priority -310; policy accept;\n%s%s\n}\n", hook, long, spared, strings.Join(rules, "\n"))
	}
	text.WriteString("}\n")
	return h.NFT(text.String())
}

// Mend removes what Break of that name added.
func (h *Host) Mend(name string) error { return h.NFT("delete table inet fault_" + name) }

// SetCarrier plugs the cable of a NIC, eth0 or eth1, in or out: its other end
// goes up or down, routes stay.
func (h *Host) SetCarrier(nic string, plugged bool) error {
	other, state := map[string]string{"eth0": "up", "eth1": "second"}[nic], "down"
	if plugged {
		state = "up"
	}
	return outside(fmt.Sprintf("link set %s%d %s", other, h.Number, state))
}

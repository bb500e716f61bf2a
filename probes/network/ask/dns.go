package ask

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/taintlet/taintlet/probes/hostfile"
	"github.com/taintlet/taintlet/probes/network/verdict"
)

// dnsTries is how often a nameserver is asked in one round, as UDP loses packets.
const dnsTries = 3

// DNS asks the nameservers of the pod's resolv.conf. NXDOMAIN is an answer. SERVFAIL and other
// errors are not.
type DNS struct {
	conf resolvConf
	seen reached
}

// resolvConf is what matters here of a resolv.conf.
type resolvConf struct {
	servers []netip.AddrPort
	name    string // what to ask for
	none    string // why there are no servers
}

// NewDNS returns the class that asks the nameservers of a resolv.conf. The file is read once: that
// of a pod never changes, and it is on the kubelet's disk, where later reads may hang.
func NewDNS(path string) *DNS {
	text, err := hostfile.Read(path)
	conf := parseResolvConf(text)
	conf.none = path + " names no nameserver"
	if err != nil {
		conf.none = "reading nameservers: " + err.Error()
	}
	return &DNS{conf: conf, seen: reached{}}
}

// Ask implements Check.
func (d *DNS) Ask(ctx context.Context, _ *verdict.Surroundings, patience time.Duration) verdict.Result {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return d.evaluate(Together(d.conf.servers, func(server netip.AddrPort) error {
		return query(ctx, server, d.conf.name, patience/dnsTries)
	}))
}

// evaluate says what the answers mean. One nameserver is enough, of those that ever answered.
func (d *DNS) evaluate(errs []error) verdict.Result {
	var well, failed, others []string
	for i, server := range d.conf.servers {
		told := server.Addr().String()
		switch {
		case errs[i] == nil:
			d.seen[server] = true
			well = append(well, told)
		case d.seen[server]:
			failed = append(failed, told+": "+why(errs[i]))
		default:
			others = append(others, told+": "+why(errs[i]))
		}
	}
	switch {
	case len(well) > 0:
		told := append([]string{"nameserver " + strings.Join(well, ", ") + " answers"}, failed...)
		return verdict.Result{Outcome: verdict.Well, Detail: strings.Join(told, "; ")}
	case len(failed) > 0:
		return verdict.Result{Outcome: verdict.Failed, Detail: "no nameserver resolves names: " + strings.Join(failed, "; ")}
	case len(others) > 0:
		return verdict.Result{Never: true, Detail: "no nameserver ever resolved names since the start: " + strings.Join(others, "; ")}
	}
	return verdict.Result{Detail: d.conf.none}
}

// parseResolvConf reads the format of resolv.conf(5). It skips lines that it does not understand,
// as resolvers do. The queried name is one that the nameserver answers without asking another: a
// Service that every cluster has, if the search list contains the cluster's domain, otherwise
// localhost (RFC 6761).
func parseResolvConf(text string) resolvConf {
	const most = 3 // MAXNS: no resolver asks more
	conf := resolvConf{name: "localhost."}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		switch {
		case len(fields) < 2:
		case fields[0] == "nameserver" && len(conf.servers) < most:
			if address, err := netip.ParseAddr(fields[1]); err == nil {
				conf.servers = append(conf.servers, netip.AddrPortFrom(address, 53))
			}
		case fields[0] == "search":
			conf.name = "localhost."
			at := slices.IndexFunc(fields, func(domain string) bool { return strings.HasPrefix(domain, "svc.") && len(domain) < 200 })
			if at > 0 {
				conf.name = "kubernetes.default." + strings.TrimSuffix(fields[at], ".") + "."
			}
		}
	}
	return conf
}

// query asks one nameserver until its first answer. The error is a rcode where it answers with one.
func query(ctx context.Context, server netip.AddrPort, name string, each time.Duration) error {
	request, err := question(uint16(rand.Uint32()), name)
	if err != nil {
		return err
	}
	dialer := net.Dialer{}
	c, err := dialer.DialUDP(ctx, "udp", netip.AddrPort{}, server)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // nothing more is to be read
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	for range dnsTries {
		err = ask(c, request, time.Now().Add(each))
		if err == nil || ctx.Err() != nil || !isTimeout(err) { // refused, or no route
			return err
		}
	}
	return err
}

// ask sends a question and waits for its answer.
func ask(c *net.UDPConn, request []byte, until time.Time) error {
	if err := c.SetDeadline(until); err != nil {
		return err
	}
	if _, err := c.Write(request); err != nil {
		return err
	}
	answer := make([]byte, 512)
	for {
		n, err := c.Read(answer)
		if err != nil {
			return err
		}
		if isAnswer(answer[:n], request) {
			return errorIn(answer[:n])
		}
	}
}

// question returns a query for the IPv4 addresses of a name (RFC 1035, 4.1).
func question(id uint16, name string) ([]byte, error) {
	b := make([]byte, 0, 64)
	b = binary.BigEndian.AppendUint16(b, id)
	b = append(b, 1, 0 /* recursion desired */, 0, 1 /* one question */, 0, 0, 0, 0, 0, 0)
	for label := range strings.SplitSeq(strings.TrimSuffix(name, "."), ".") {
		if label == "" || len(label) > 63 {
			return nil, errors.New("not a domain name: " + hostfile.Excerpt(name))
		}
		b = append(append(b, byte(len(label))), label...)
	}
	return append(b, 0, 0, 1 /* A */, 0, 1 /* IN */), nil
}

// isAnswer reports whether a packet answers a question: the same ID, and the bit that says response.
func isAnswer(packet, question []byte) bool {
	const head = 12
	return len(packet) >= head && packet[0] == question[0] && packet[1] == question[1] && packet[2]&0x80 != 0
}

// rcode is how a nameserver says that it cannot answer (RFC 1035, 4.1.1).
type rcode byte

// Error returns the name of the code.
func (r rcode) Error() string {
	if name := map[rcode]string{1: "FORMERR", 2: "SERVFAIL", 4: "NOTIMP", 5: "REFUSED"}[r]; name != "" {
		return name
	}
	return fmt.Sprintf("RCODE %d", byte(r))
}

// errorIn returns the error that an answer has; nil: none. That the name is there (0), or does
// not exist (3), is an answer, as resolvers take it.
func errorIn(answer []byte) error {
	if code := rcode(answer[3] & 0xf); code != 0 && code != 3 {
		return code
	}
	return nil
}

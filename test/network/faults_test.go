package network

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/taintlet/taintlet/probes/network/verdict"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/bed/fleet"
	"github.com/taintlet/taintlet/test/process"
)

// fault breaks something, and mends it again. Both are given all agents.
type fault struct {
	begin, end func([]*fleet.Agent) error
}

// packets is a fault of the packet filter of some hosts.
func packets(numbers []int, rules ...string) fault {
	return fault{
		begin: onHosts(numbers, func(a *fleet.Agent) error { return a.Break("packets", rules...) }),
		end:   onHosts(numbers, func(a *fleet.Agent) error { return a.Mend("packets") }),
	}
}

// onHosts does something on the hosts with these numbers, all if there are none.
func onHosts(numbers []int, do func(*fleet.Agent) error) func([]*fleet.Agent) error {
	return func(agents []*fleet.Agent) error {
		var errs []error
		for _, a := range agents {
			if len(numbers) == 0 || slices.Contains(numbers, a.Number) {
				errs = append(errs, do(a))
			}
		}
		return errors.Join(errs...)
	}
}

// between is the rules that keep a host and those with these numbers from one
// another.
func between(numbers ...int) []string {
	var addresses []string
	for _, number := range numbers {
		addresses = append(addresses, bed.HostAddress(number).String())
	}
	set := "{ " + strings.Join(addresses, ", ") + " }"
	return []string{"out ip daddr " + set + " drop", "in ip saddr " + set + " drop"}
}

// everybody has the numbers of all hosts.
func everybody() []int { return []int{1, 2, 3, 4, 5, 6, 7, 8} }

// cutOff keeps hosts from all others but not from one another, nor from the API
// server.
func cutOff(numbers ...int) fault {
	var others []int
	for _, number := range everybody() {
		if !slices.Contains(numbers, number) {
			others = append(others, number)
		}
	}
	return packets(numbers, between(others...)...)
}

// lossy drops that percentage of what hosts send and of what they receive. What
// they send is dropped where it arrives: a packet that the own packet filter drops
// has never left for TCP, which then does not count it as sent again.
func lossy(percent int, numbers ...int) fault {
	drop := fmt.Sprintf(" numgen random mod 100 < %d drop", percent)
	begin := func(a *fleet.Agent) error {
		var rules []string
		for _, number := range numbers {
			if number == a.Number {
				rules = append(rules, "in iifname eth0"+drop)
			} else {
				rules = append(rules, "in ip saddr "+bed.HostAddress(number).String()+drop)
			}
		}
		return a.Break("packets", rules...)
	}
	return fault{
		begin: onHosts(nil, begin),
		end:   onHosts(nil, func(a *fleet.Agent) error { return a.Mend("packets") }),
	}
}

// noDNS stops all DNS servers.
func (s scene) noDNS() fault {
	return fault{begin: s.onDNS((*bed.Host).StopDNS), end: s.onDNS((*bed.Host).StartDNS)}
}

// refusingDNS makes all DNS servers refuse what they are asked.
func (s scene) refusingDNS() fault {
	instead := func(start func(*bed.Host) error) func([]*fleet.Agent) error {
		return s.onDNS(func(h *bed.Host) error { return errors.Join(h.StopDNS(), start(h)) })
	}
	return fault{begin: instead((*bed.Host).StartRefusingDNS), end: instead((*bed.Host).StartDNS)}
}

// onDNS does something on the hosts with a DNS server.
func (s scene) onDNS(do func(*bed.Host) error) func([]*fleet.Agent) error {
	return func([]*fleet.Agent) error {
		var errs []error
		for _, h := range s.Network.DNS {
			errs = append(errs, do(h))
		}
		return errors.Join(errs...)
	}
}

// servfail makes the answers of nameservers that come in SERVFAIL: the byte with the RCODE
// is the fourth after the UDP header.
const servfail = "in udp sport 53 @th,88,8 set 0x82"

// frozen stops the API server as an overload does: nobody answers, connections
// stay.
func (s scene) frozen() fault {
	send := func(signal syscall.Signal) func([]*fleet.Agent) error {
		return func([]*fleet.Agent) error { return syscall.Kill(s.Cluster.Processes()["kube-apiserver"], signal) }
	}
	return fault{begin: send(syscall.SIGSTOP), end: send(syscall.SIGCONT)}
}

// repeated does something again and again until it ends.
func repeated(every time.Duration, do, undo func([]*fleet.Agent) error, pause time.Duration) fault {
	stop, stopped := make(chan struct{}), make(chan error, 1)
	wait := func(d time.Duration) bool {
		select {
		case <-stop:
			return false
		case <-time.After(d):
			return true
		}
	}
	return fault{
		begin: func(agents []*fleet.Agent) error {
			go func() {
				for err := error(nil); ; {
					err = errors.Join(err, do(agents))
					on := wait(pause)
					err = errors.Join(err, undo(agents))
					if !on || !wait(every-pause) {
						stopped <- err
						return
					}
				}
			}()
			return nil
		},
		end: func([]*fleet.Agent) error {
			close(stop)
			return <-stopped
		},
	}
}

// oneAfterAnother begins a fault on one host after another, over two minutes.
func oneAfterAnother(rules ...string) fault {
	f := packets(nil, rules...)
	f.begin = func(agents []*fleet.Agent) error {
		for _, a := range agents {
			if err := a.Break("packets", rules...); err != nil {
				return err
			}
			time.Sleep(twoMinutes / time.Duration(len(agents)))
		}
		return nil
	}
	return f
}

// halfOpen drops what belongs to the connections to the API server that hosts
// have now, and lets them make new ones.
func (s scene) halfOpen(numbers ...int) fault {
	server := s.serverAddress()
	return fault{
		begin: onHosts(numbers, func(a *fleet.Agent) error {
			ports, err := a.PortsTo(server)
			if err != nil {
				return err
			}
			set := "{ " + strings.Join(ports, ", ") + " }"
			return a.Break("packets", "out tcp sport "+set+" drop", "in tcp dport "+set+" drop")
		}),
		end: onHosts(numbers, func(a *fleet.Agent) error { return a.Mend("packets") }),
	}
}

// serverAddress is where the API server listens.
func (s scene) serverAddress() netip.AddrPort {
	return netip.MustParseAddrPort(strings.TrimPrefix(s.Cluster.URL(), "https://"))
}

// restarted begins a fault and restarts the agent of a host when that suspects itself.
func (s scene) restarted(f fault, number int) fault {
	begin := f.begin
	f.begin = func(agents []*fleet.Agent) error {
		return errors.Join(begin(agents), onHosts([]int{number}, func(a *fleet.Agent) error {
			if !s.Records.Wait(alone, func(states map[string]fleet.State) bool { return verdict.IsSuspicion(states[a.Name].Reason) }) {
				return errors.New(a.Name + " does not suspect itself")
			}
			err := a.Process.Kill()
			a.Run()
			return err
		})(agents))
	}
	return f
}

// hanging freezes the agents of some hosts. The kernel still accepts connections.
func hanging(numbers ...int) fault {
	send := func(signal syscall.Signal) func([]*fleet.Agent) error {
		return onHosts(numbers, func(a *fleet.Agent) error { return syscall.Kill(a.Process.PID(), signal) })
	}
	return fault{begin: send(syscall.SIGSTOP), end: send(syscall.SIGCONT)}
}

// busy keeps all cores from idling, several times over.
func busy(hogs int) fault {
	var running []*process.Process
	return fault{
		begin: func([]*fleet.Agent) error {
			for range hogs {
				p, err := process.Start("a hog", process.Command("sh", "-c", "while :; do :; done"), "")
				if err != nil {
					return err
				}
				running = append(running, p)
			}
			return nil
		},
		end: func([]*fleet.Agent) error {
			var errs []error
			for _, p := range running {
				errs = append(errs, p.Kill())
			}
			return errors.Join(errs...)
		},
	}
}

// command is a fault of the configuration of some hosts, by ip(8).
func command(numbers []int, begin, end string) fault {
	return fault{
		begin: onHosts(numbers, func(a *fleet.Agent) error { return a.IP(begin) }),
		end:   onHosts(numbers, func(a *fleet.Agent) error { return a.IP(end) }),
	}
}

// left removes the overlay's device.
func (s scene) left(numbers ...int) fault {
	return fault{
		begin: onHosts(numbers, func(a *fleet.Agent) error { return a.LeaveOverlay() }),
		end:   onHosts(numbers, func(a *fleet.Agent) error { return s.Network.RejoinOverlay(a.Host) }),
	}
}

func (s scene) withoutServices(numbers ...int) fault {
	return fault{
		begin: onHosts(numbers, func(a *fleet.Agent) error { return a.DropServices() }),
		end:   onHosts(numbers, func(a *fleet.Agent) error { return s.Network.RestoreServices(a.Host) }),
	}
}

func proxyStuck(numbers ...int) fault {
	set := func(well bool) func([]*fleet.Agent) error {
		return onHosts(numbers, func(a *fleet.Agent) error {
			a.SetProxy(well)
			return nil
		})
	}
	return fault{begin: set(false), end: set(true)}
}

func unplugged(nic string, numbers ...int) fault {
	return fault{
		begin: onHosts(numbers, func(a *fleet.Agent) error { return a.SetCarrier(nic, false) }),
		end:   onHosts(numbers, func(a *fleet.Agent) error { return a.SetCarrier(nic, true) }),
	}
}

// flapping takes the link of a host down and up five times in 10 s.
func flapping(number int) fault {
	f := unplugged("eth0", number)
	f.begin = onHosts([]int{number}, func(a *fleet.Agent) error {
		for range 5 {
			for _, plugged := range []bool{false, true} {
				if err := a.SetCarrier("eth0", plugged); err != nil {
					return err
				}
				time.Sleep(time.Second)
			}
		}
		return nil
	})
	return f
}

// quarters keeps each two hosts from the other six.
func quarters() fault {
	return fault{
		begin: onHosts(nil, func(a *fleet.Agent) error {
			pair := (a.Number+1)/2*2 - 1
			return a.Break("packets", between(slices.DeleteFunc(everybody(), func(n int) bool { return n == pair || n == pair+1 })...)...)
		}),
		end: onHosts(nil, func(a *fleet.Agent) error { return a.Mend("packets") }),
	}
}

// eachAlone keeps all hosts from one another.
func eachAlone() fault { return packets(nil, between(everybody()...)...) }

// largest is the largest packet that gets through a hole: a tunnel on the way takes the rest.
const largest = 1400

// holeIn drops the larger packets that come to a host from others, and tells nobody.
func holeIn(number int) fault {
	return packets([]int{number}, fmt.Sprintf("%s meta length > %d drop", fromPeers, largest))
}

// holeOut drops those that a host sends to others, where they arrive: what the own packet
// filter drops has never left for TCP.
func holeOut(numbers ...int) fault {
	begin := func(a *fleet.Agent) error {
		var rules []string
		for _, number := range numbers {
			if number != a.Number {
				rules = append(rules, fmt.Sprintf("in ip saddr %s meta length > %d drop", bed.HostAddress(number), largest))
			}
		}
		if len(rules) == 0 {
			rules = []string{"in ip saddr 192.0.2.1 drop"} // nothing: so that there is something to mend
		}
		return a.Break("packets", rules...)
	}
	return fault{begin: onHosts(nil, begin), end: onHosts(nil, func(a *fleet.Agent) error { return a.Mend("packets") })}
}

// Package bed is what tests and measurements run agents on: the chart's rules on a
// control plane, the identities of agents, the agents themselves as processes, and
// hosts that are network namespaces.
//
// The hosts have an underlay between them, an overlay over it as flannel makes it
// (VXLAN), DNS servers in pods, and the rules of a Service as kube-proxy makes them.
// Tests break it with nft and ip. Everything lives in namespaces without names, which
// end with the processes in them, and these end with the process of the test: nothing
// is left on the host, whatever happens.
package bed

// Package culprit shows that taintlet names the right consumer: on a real kubelet with 20
// pods and on units beside it, seeded hogs take memory and tasks, and what the Node's condition
// says is compared with who did.
package culprit

// Package laws holds no code, only tests: the rules about who may import
// whom, so that a change that breaks the layout fails before it is reviewed.
package laws

/**
 * Attributes the samples of a CPU or allocation profile to modules. A frame belongs to the module
 * of its source file (`modules.ts`). Built-in functions, such as `JSON.parse` and `Buffer.from`,
 * have no source file. Their frames belong to the module that called them.
 */

/** A node of the call tree of a profile. `weight` excludes the children. */
export interface CallNode {
  readonly frame: Frame
  readonly weight: number
  readonly children: readonly CallNode[]
}
interface Frame {
  readonly functionName: string
  readonly url: string
  /** Line of the function, counted from 0. */
  readonly lineNumber: number
  readonly columnNumber: number
}
/** A CPU profile of V8. Times are in microseconds. */
interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number
    readonly callFrame: Frame
    readonly children?: readonly number[]
  }[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}
/** An allocation profile of V8. Sizes are in bytes. */
interface HeapProfile {
  readonly head: HeapNode
}
interface HeapNode {
  readonly callFrame: Frame
  readonly selfSize: number
  readonly children: readonly HeapNode[]
}

/** Returns the call tree of a CPU profile, weighted by time. */
export function callsOf({ nodes, samples, timeDeltas }: CpuProfile): CallNode {
  const weights = new Map<number, number>()
  samples.forEach((id, i) => {
    // `timeDeltas` contains the time before each sample, so the time after this sample is the next
    // element.
    weights.set(id, (weights.get(id) ?? 0) + Math.max(0, timeDeltas[i + 1] ?? 0))
  })
  const known = new Map(nodes.map((node) => [node.id, node]))
  const at = (id: number): CallNode => {
    const node = known.get(id)
    if (!node) throw new Error(`the profile has no node ${id}`)
    return {
      frame: node.callFrame,
      weight: weights.get(id) ?? 0,
      children: (node.children ?? []).map(at),
    }
  }
  return at(nodes[0]?.id ?? 0)
}
/** Returns the call tree of an allocation profile, weighted by bytes. */
export const allocationsOf = ({ head }: HeapProfile): CallNode => {
  const at = ({ callFrame, selfSize, children }: HeapNode): CallNode => ({
    frame: callFrame,
    weight: selfSize,
    children: children.map(at),
  })
  return at(head)
}

/** Modules of V8's pseudo-frames, by function name; undefined for idle time. */
const SPECIAL: Readonly<Record<string, string | undefined>> = {
  '(idle)': undefined,
  '(root)': 'V8 and native code without a caller',
  '(program)': 'V8 and native code without a caller',
  '(garbage collector)': 'garbage collection',
}
/** The source of a frame. */
export interface Located {
  /** Path of the source file; empty if the frame has none. */
  readonly file: string
  /** Line of the function, counted from 1, if it is known. */
  readonly line?: number
  /** The module; undefined if the frame belongs to the module of its caller. */
  readonly module: string | undefined
}
export interface Attributed {
  /** Weight by module. */
  readonly modules: ReadonlyMap<string, number>
  /** Weight by function (`<file> <function>`). */
  readonly functions: ReadonlyMap<string, number>
  /** Sum of all weights, without idle time. */
  readonly total: number
}
/**
 * Sums the weights by module and by function.
 * @param locate returns the source of a frame.
 */
export function attribute(root: CallNode, locate: (frame: Frame) => Located): Attributed {
  const modules = new Map<string, number>()
  const functions = new Map<string, number>()
  let total = 0
  const add = (sums: Map<string, number>, name: string, weight: number) =>
    void (weight > 0 && sums.set(name, (sums.get(name) ?? 0) + weight))
  const open: { node: CallNode; caller: string; from: string }[] = [
    { node: root, caller: SPECIAL['(root)'] ?? '', from: '' },
  ]
  for (let next = open.pop(); next; next = open.pop()) {
    const { node, caller, from } = next
    const { functionName } = node.frame
    if (Object.hasOwn(SPECIAL, functionName)) {
      const module = SPECIAL[functionName]
      if (module !== undefined) {
        total += node.weight
        add(modules, module, node.weight)
        add(functions, functionName, node.weight)
      }
      for (const child of node.children) open.push({ node: child, caller, from })
      continue
    }
    const { file, line = node.frame.lineNumber + 1, module = caller } = locate(node.frame)
    const name = functionName === '' ? `line ${line}` : functionName
    total += node.weight
    add(modules, module, node.weight)
    // The name of a native function says little without the function that called it, so both are
    // shown.
    add(functions, file === '' ? `${from} → ${name}` : `${file} ${name}`, node.weight)
    const here = file === '' ? from : `${file} ${name}`
    for (const child of node.children) open.push({ node: child, caller: module, from: here })
  }
  return { modules, functions, total }
}

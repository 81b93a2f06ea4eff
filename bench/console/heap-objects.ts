/** Computes the size of the objects in the JavaScript heap of a page from a V8 heap snapshot. */
import type { CDPSession } from 'playwright-core'

/**
 * Types of nodes that are not objects of scripts. They are objects of the browser, and compiled
 * code with its profile, which grows as long as V8 compiles functions.
 */
const OTHERS: ReadonlySet<string> = new Set(['code', 'native', 'synthetic'])

/**
 * The part of a heap snapshot that is evaluated. In `nodes`, each node is a sequence of numbers,
 * one for each of the `node_fields`.
 */
interface Snapshot {
  readonly snapshot: {
    readonly meta: {
      readonly node_fields: readonly string[]
      readonly node_types: readonly [readonly string[], ...unknown[]]
    }
  }
  readonly nodes: readonly number[]
}

/** Returns the total size in bytes of the objects, arrays, functions and strings in a snapshot. */
export function objectBytesOf({ snapshot: { meta }, nodes }: Snapshot): number {
  const { node_fields: fields, node_types } = meta
  const [type, size] = [fields.indexOf('type'), fields.indexOf('self_size')]
  let bytes = 0
  for (let node = 0; node < nodes.length; node += fields.length)
    if (!OTHERS.has(node_types[0][nodes[node + type] ?? -1] ?? '')) bytes += nodes[node + size] ?? 0
  return bytes
}

/** Returns the size in bytes of the objects of a page. V8 collects garbage first. */
export async function objectBytes(cdp: CDPSession): Promise<number> {
  const parts: string[] = []
  const collect = ({ chunk }: { readonly chunk: string }): void => void parts.push(chunk)
  cdp.on('HeapProfiler.addHeapSnapshotChunk', collect)
  try {
    await cdp.send('HeapProfiler.takeHeapSnapshot', { reportProgress: false })
  } finally {
    cdp.off('HeapProfiler.addHeapSnapshotChunk', collect)
  }
  return objectBytesOf(JSON.parse(parts.join('')) as Snapshot)
}

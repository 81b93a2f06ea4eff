/** A map whose removed values are not kept in memory by its former hash tables. */
import { execFileSync } from 'node:child_process'
import t from 'tap'
import { TransientMap } from '../../../protocol/rules/transient-map.ts'

t.test('it has the semantics of a map', (t) => {
  const map = new TransientMap<string, { readonly n: number }>()
  const value = (n: number) => ({ n })
  t.equal(map.delete('a'), false)
  map.set('a', value(1))
  map.set('b', value(2))
  map.set('a', value(3))
  t.same([map.size, map.get('a'), map.has('b'), map.has('c')], [2, value(3), true, false])
  t.same([...map.keys()], ['a', 'b'], 'in the order of the first additions')
  t.same([...map.values()], [value(3), value(2)])
  t.equal(map.delete('a'), true)
  t.same([map.get('a'), map.has('a'), map.size], [undefined, false, 1])
  map.set('a', value(4))
  const seen: number[] = []
  for (const { n } of map.values()) {
    seen.push(n)
    if (n === 2) map.delete('a')
    if (n === 2) map.set('c', value(5))
  }
  t.same(seen, [2, 5], 'removed values are not visited, added ones are')
  map.clear()
  t.same([map.size, map.get('b'), [...map.values()]], [0, undefined, []])
  t.end()
})

/**
 * Adds values to a map and removes them again, in a new process. Returns the number of megabytes
 * that young collections promote after a full collection has moved the table of the map to the old
 * generation.
 */
function promoted(map: string): number {
  const program = `
    const { GCProfiler } = require('node:v8')
    const map = new (${map})()
    const profiler = new GCProfiler()
    for (let n = 0; n < 20_000; n++) {
      map.set(n, Array.from({ length: 100 }, () => ({ n })))
      map.delete(n - 200)
      if (n === 1000) {
        gc()
        profiler.start()
      }
    }
    const old = ({ heapSpaceStatistics }) =>
      heapSpaceStatistics.find(({ spaceName }) => spaceName === 'old_space').spaceUsedSize
    let bytes = 0
    for (const { gcType, beforeGC, afterGC } of profiler.stop().statistics)
      if (gcType === 'Scavenge') bytes += old(afterGC) - old(beforeGC)
    console.log(bytes / 1e6)`
  const flags = ['--expose-gc', '--min-semi-space-size=16', '--max-semi-space-size=16']
  return Number(execFileSync(process.execPath, [...flags, '-e', program], { encoding: 'utf8' }))
}

t.test('young collections find the removed values', (t) => {
  const [transient, plain] = [promoted(String(TransientMap)), promoted('Map')]
  t.ok(transient < plain / 4, `${transient} MB; with a plain map ${plain} MB`)
  t.end()
})

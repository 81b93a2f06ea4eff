/** Copies of objects that gain properties and share their hidden class. */
import { execFileSync } from 'node:child_process'
import t from 'tap'
import { extended } from '../../../protocol/rules/extended.ts'

t.test('it has the semantics of a spread', (t) => {
  const base = { a: 1, b: 2 }
  t.same(Object.entries(extended(base, { b: 3, c: 4 })), [
    ['a', 1],
    ['b', 3],
    ['c', 4],
  ])
  t.same(base, { a: 1, b: 2 }, 'the object itself is unchanged')
  t.same(extended(base, false), base)
  t.same(extended(undefined, { c: 4 }), { c: 4 })
  t.not(extended(base), base, 'the result is a copy')
  t.end()
})

/**
 * Adds a property to copies of one object in a new process, until the code is optimized. Returns
 * whether two copies have the same hidden class.
 */
function shareClass(copy: string): boolean {
  const program = `
    const extended = ${extended}
    const base = { a: 1, b: 2, c: 3 }
    const copy = (n) => (${copy})
    for (let n = 0; n < 20_000; n++) copy(n)
    console.log(%HaveSameMap(copy(1), copy(2)))`
  const flags = ['--allow-natives-syntax', '-e', program]
  return execFileSync(process.execPath, flags, { encoding: 'utf8' }).trim() === 'true'
}

t.test('copies share their hidden class', (t) => {
  t.equal(shareClass('extended(base, { n })'), true)
  t.end()
})

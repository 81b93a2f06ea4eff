/** Files that share a process: the teardown of a file runs at the end of that file. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import t from 'tap'

const together = join(import.meta.dirname, '../../together.mjs')

t.test('a teardown that is added while tests run belongs to its file', async (t) => {
  const file = (name: string) => `
    import t from 'tap'
    t.teardown(() => console.log('# first of ${name}'))
    t.test('one', async () => {})
    t.test('two', async () => {
      await new Promise((later) => setTimeout(later, 1))
      t.teardown(() => console.log('# later of ${name}'))
    })`
  const folder = t.testdir({ 'a.mjs': file('a'), 'b.mjs': file('b') })
  const env = { ...process.env, BATON_TEST_BUNDLE: undefined, BATON_TEST_CPU: undefined }
  const files = ['a.mjs', 'b.mjs'].map((name) => join(folder, name))
  const output = execFileSync(process.execPath, [together, ...files], { encoding: 'utf8', env })
  t.strictSame(
    output.split('\n').filter((line) => / of [ab]$/.test(line)),
    ['# later of a', '# first of a', '# later of b', '# first of b'],
  )
})

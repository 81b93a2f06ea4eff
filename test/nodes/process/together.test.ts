/**
 * Files that share a process: the teardowns and the assertions of a file belong to that file.
 */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import t, { type Test } from 'tap'

const together = join(import.meta.dirname, '../../together.mjs')

/** Runs test files, given by their names and sources, in one process. Returns the output. */
function outputOf(t: Test, sources: Readonly<Record<string, string>>): readonly string[] {
  const folder = t.testdir(sources)
  const env = { ...process.env, BATON_TEST_BUNDLE: undefined, BATON_TEST_CPU: undefined }
  const files = Object.keys(sources).map((name) => join(folder, name))
  return execFileSync(process.execPath, [together, ...files], { encoding: 'utf8', env }).split('\n')
}

t.test('a teardown that is added while tests run belongs to its file', async (t) => {
  const file = (name: string) => `
    import t from 'tap'
    t.teardown(() => console.log('# first of ${name}'))
    t.test('one', async () => {})
    t.test('two', async () => {
      await new Promise((later) => setTimeout(later, 1))
      t.teardown(() => console.log('# later of ${name}'))
    })`
  const output = outputOf(t, { 'a.mjs': file('a'), 'b.mjs': file('b') })
  t.strictSame(
    output.filter((line) => / of [ab]$/.test(line)),
    ['# later of a', '# first of a', '# later of b', '# first of b'],
  )
})

t.test('an assertion of the file itself is reported before the end of the file', async (t) => {
  const file = (name: string) => `
    import t from 'tap'
    t.test('one', async () => {
      await new Promise((later) => setTimeout(later, 1))
      t.pass('of ${name}')
    })`
  const output = outputOf(t, { 'a.mjs': file('a'), 'b.mjs': file('b') })
  t.strictSame(
    output
      .flatMap((line) => /^ok \d+ - (?:the end )?of .*?\b([ab])(?:\.mjs)?\b/.exec(line)?.[0] ?? [])
      .map((line) => line.replace(/^ok \d+ - |\S*\/|\.mjs/g, '')),
    ['of a', 'the end of a', 'of b', 'the end of b'],
  )
})

/**
 * The command `bench`. The list of benchmarks is read from the text of their files, and must not
 * depend on formatting.
 */
import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { benchmarks, runBench } from '../../../nodes/commands/bench.ts'
import { StartFault } from '../../../nodes/process/fault.ts'

t.test('every file that exports a description is listed', async (t) => {
  const folder = new URL('../../../bench/', import.meta.url)
  const files = readdirSync(folder)
    .filter((name) => name.endsWith('.ts'))
    .filter((name) => readFileSync(new URL(name, folder), 'utf8').includes('export const about'))
    .map((name) => name.slice(0, -'.ts'.length))
    .sort()
  t.ok(files.length > 10)
  t.strictSame([...benchmarks().keys()].sort(), files)
})

t.test('options that only one benchmark has are refused with others', async (t) => {
  const options = {
    against: 'HEAD',
    scenario: 'steps',
    runs: '10',
    roles: true,
    profile: true,
  } as const
  for (const name of Object.keys(options) as (keyof typeof options)[])
    for (const benchmark of ['runs', undefined])
      await t.rejects(
        runBench(benchmark, { save: false, [name]: options[name] }),
        new StartFault(
          '--against, --scenario, --runs, --roles, and --profile without a folder need the benchmark cost.',
        ),
        `${benchmark} --${name}`,
      )
})

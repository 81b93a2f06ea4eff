/**
 * `baton bench [name]`: runs benchmarks and prints their tables. Unless `--no-save` is set, it also
 * stores them in `bench/RESULTS.md`.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, release, totalmem, type } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findServer } from '../nats/server/install.ts'
import { endOnSignals } from '../process/ending.ts'
import { StartFault } from '../process/fault.ts'
import { version } from '../version.ts'

const folder = fileURLToPath(new URL('../../bench', import.meta.url))
interface Terms {
  readonly times: number
  readonly quick: boolean
  readonly size?: number
  readonly profile?: string
  readonly against?: string
  readonly scenario?: string
  readonly runs?: number
  readonly seconds?: number
  readonly roles?: boolean
  readonly attribute?: boolean
  say(line: string): void
}
interface Benchmark {
  /** Number of measurements of each row of a table, unless `--times` is set. The default is 3. */
  readonly repeats?: { readonly standard: number; readonly quick: number }
  /**
   * Returns what must be installed before the benchmark can run; undefined if nothing is missing.
   */
  missing?(): string | undefined
  bench(terms: Terms): Promise<string>
}

/**
 * Returns the name and the description of each benchmark. A benchmark is a file of `bench/` that
 * exports `about`, its description. `about` must consist of string literals joined with `+`, one
 * per line, because the files are read as text and not imported.
 */
export const benchmarks = (): ReadonlyMap<string, string> => {
  const found = new Map<string, string>()
  for (const file of readdirSync(folder)
    .filter((name) => name.endsWith('.ts'))
    .sort()) {
    const literals = /^export const about =((\s*(['"]).*\3( \+)?$)+)/m.exec(
      readFileSync(join(folder, file), 'utf8'),
    )?.[1]
    if (literals === undefined) continue
    const parts = literals.matchAll(/^\s*(['"])(.*)\1(?: \+)?$/gm)
    found.set(file.slice(0, -3), [...parts].map((part) => part[2]).join(''))
  }
  return found
}

interface Options {
  readonly times?: string
  readonly quick?: boolean
  readonly size?: string
  readonly save: boolean
  readonly note?: string
  readonly profile?: string | true
  readonly against?: string
  readonly scenario?: string
  readonly runs?: string
  readonly seconds?: string
  readonly roles?: boolean
}
/**
 * Runs the named benchmark, or all of them, and ends the process.
 * @throws StartFault when the name or an option is invalid, or something must be installed first.
 */
export async function runBench(
  name: string | undefined,
  { times, quick = false, size, save, note, profile, runs, seconds, ...comparison }: Options,
): Promise<void> {
  const known = [...benchmarks().keys()]
  if (name !== undefined && !known.includes(name))
    throw new StartFault(`There is no benchmark ${name}. Available: ${known.join(', ')}.`)
  if (times !== undefined && !/^[1-9]\d{0,2}$/.test(times))
    throw new StartFault(`--times must be a whole number from 1 to 999, not ${times}.`)
  if (size !== undefined && !/^[1-9]\d{0,8}$/.test(size))
    throw new StartFault(`--size must be a whole number from 1 to 999999999, not ${size}.`)
  if (runs !== undefined && !/^[1-9]\d{0,7}$/.test(runs))
    throw new StartFault(`--runs must be a whole number from 1 to 99999999, not ${runs}.`)
  if (seconds !== undefined && !/^[1-9]\d{0,5}$/.test(seconds))
    throw new StartFault(`--seconds must be a whole number from 1 to 999999, not ${seconds}.`)
  const { against, scenario, roles } = comparison
  const alone = against ?? scenario ?? runs ?? roles ?? (profile === true || undefined)
  if (name !== 'cost' && alone !== undefined)
    throw new StartFault(
      '--against, --scenario, --runs, --roles, and --profile without a folder need the benchmark cost.',
    )
  endOnSignals()
  const nats = await findServer(process.env, (line) => process.stderr.write(`${line}\n`))
  for (const one of name === undefined ? known : [name]) {
    const {
      bench,
      missing,
      repeats = { standard: 3, quick: 3 },
    } = (await import(join(folder, `${one}.ts`))) as Benchmark
    const lacks = missing?.()
    if (lacks !== undefined) {
      if (name !== undefined) throw new StartFault(lacks)
      process.stdout.write(`${one} is left out: ${lacks}\n`)
      continue
    }
    const repeated = Number(times ?? (quick ? repeats.quick : repeats.standard))
    process.stdout.write(`${one}\n`)
    const table = await bench({
      times: repeated,
      quick,
      ...(size !== undefined && { size: Number(size) }),
      ...(typeof profile === 'string' && { profile: resolve(profile) }),
      ...comparison,
      ...(runs !== undefined && { runs: Number(runs) }),
      ...(seconds !== undefined && { seconds: Number(seconds) }),
      attribute: profile !== undefined,
      say: (line) => process.stdout.write(`  ${line}\n`),
    })
    const how =
      (repeated === 1 ? 'One run of each' : `Medians of ${repeated} runs of each, taken in turn`) +
      `${quick ? ', with the smaller counts of --quick' : ''}.${note ? ` ${note}` : ''}`
    process.stdout.write(`\n${table}\n\n${how}\n\n`)
    if (save) keep(one, `${how}\n\n${table}`, nats.version)
  }
  // Open connections to a stopped server must not keep the process alive.
  process.exit(0)
}

function keep(name: string, text: string, nats: string): void {
  const file = join(folder, 'RESULTS.md')
  const [cpu] = cpus()
  const machine =
    `${new Date().toISOString().slice(0, 10)}, ${cpus().length} cores ` +
    `(${cpu?.model.trim() ?? 'unknown'}), ${Math.round(totalmem() / 2 ** 30)} GiB, ` +
    `${type()} ${release()}, Node ${process.versions.node}, nats-server ${nats}, Baton ${version}`
  const sections = new Map<string, string>()
  for (const section of (existsSync(file) ? readFileSync(file, 'utf8') : '')
    .split(/^## /m)
    .slice(1))
    sections.set(
      section.slice(0, section.indexOf('\n')).trim(),
      section.slice(section.indexOf('\n')).trim(),
    )
  sections.set(name, `${machine}\n\n${text}`)
  const order = [...benchmarks().keys()].filter((one) => sections.has(one))
  const all = order.map(
    (one) =>
      `## ${one}\n\n${benchmarks().get(one)}.\n\n` +
      `${(sections.get(one) ?? '').replace(`${benchmarks().get(one)}.\n\n`, '')}\n`,
  )
  writeFileSync(
    file,
    `# Results\n\nWritten by \`npm run bench\`; each section is the last run of its benchmark.\n\n${all.join('\n')}`,
  )
}

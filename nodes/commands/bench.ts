/** `baton bench [name]`: runs benchmarks, prints their tables and keeps them in `bench/RESULTS.md`. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, release, totalmem, type } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Fault } from '../fault.ts'
import { findServer } from '../nats/install.ts'
import { version } from '../version.ts'

const folder = fileURLToPath(new URL('../../bench', import.meta.url))
interface Benchmark { bench(times: number, say: (line: string) => void): Promise<string> }

/** Benchmarks are the files of `bench/` that export `bench`; helpers do not. */
export const benchmarks = (): string[] =>
  readdirSync(folder).filter((file) => file.endsWith('.ts') && readFileSync(join(folder, file), 'utf8').includes('export async function bench(')).map((file) => file.slice(0, -3))

/** Run the named benchmark, or all. */
export async function runBench(name: string | undefined, { times, save }: { times: string; save: boolean }): Promise<void> {
  const known = benchmarks()
  if (name !== undefined && !known.includes(name)) throw new Fault(`There is no benchmark ${name}. There are: ${known.join(', ')}.`)
  const nats = await findServer(process.env, (line) => process.stderr.write(`${line}\n`))
  for (const one of name === undefined ? known : [name]) {
    const { bench } = (await import(join(folder, `${one}.ts`))) as Benchmark
    process.stdout.write(`${one}\n`)
    const table = await bench(Number(times), (line) => process.stdout.write(`  ${line}\n`))
    process.stdout.write(`\n${table}\n\n`)
    if (save) keep(one, table, nats.version)
  }
}

/** Replace the section of a benchmark in the results. */
function keep(name: string, table: string, nats: string): void {
  const file = join(folder, 'RESULTS.md')
  const head = '# Results\n\nWritten by `npm run bench`; each section is the last run of its benchmark.\n'
  const text = existsSync(file) ? readFileSync(file, 'utf8') : head
  const [cpu] = cpus()
  const machine = `${new Date().toISOString().slice(0, 10)}, ${cpus().length} cores (${cpu?.model.trim() ?? 'unknown'}), ${Math.round(totalmem() / 2 ** 30)} GiB, ${type()} ${release()}, Node ${process.versions.node}, nats-server ${nats}, Baton ${version}`
  const section = `## ${name}\n\n${machine}\n\n${table}\n`
  const pattern = new RegExp(`## ${name}\\n[\\s\\S]*?(?=\\n## |$)`)
  writeFileSync(file, pattern.test(text) ? text.replace(pattern, section) : `${text}\n${section}`)
}

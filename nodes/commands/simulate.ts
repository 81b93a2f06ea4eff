/** `baton simulate`: the engine in simulated worlds that go wrong, one per seed, until one fails or all have passed. */
import { fileURLToPath } from 'node:url'

const module = fileURLToPath(new URL('../../test/simulation/run.ts', import.meta.url))
interface Simulations {
  simulate(options: { from: number; seeds: number; most: number; lines: number; say: (line: string) => void }): Promise<readonly string[]>
}

/** Run the seeds from a number on; the exit code says whether all passed. */
export async function runSimulations({ seeds, from, failures, lines }: { seeds: string; from: string; failures: string; lines: string }): Promise<void> {
  const { simulate } = (await import(module)) as Simulations
  const started = performance.now()
  const failed = await simulate({ from: Number(from), seeds: Number(seeds), most: Number(failures), lines: Number(lines), say: (line) => void process.stdout.write(`${line}\n`) })
  process.stdout.write(`${failed.length === 0 ? `${seeds} seeds from ${from} passed` : `${failed.length} failed`} in ${Math.round((performance.now() - started) / 1000)} s\n`)
  process.exitCode = failed.length === 0 ? 0 : 1
}

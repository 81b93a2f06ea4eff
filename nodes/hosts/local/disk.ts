/**
 * Measures the size of the files of an environment. File systems without quotas cannot limit a
 * folder, so each folder is measured periodically. If a folder is too large, its worker is ended.
 */
import { spawn } from 'node:child_process'

/**
 * Bytes counted for each file in addition to its blocks, because its inode also uses disk space.
 */
const FILE_BYTES = 1024
/** Target share of time that is spent on measurements. */
const MEASURING_SHARE = 1 / 20
/** Limits of the pause between two measurements, in milliseconds. */
export const MEASURE_MS = { least: 5000, most: 60_000 } as const
/** Maximum duration of one measurement in milliseconds. */
const MEASURE_TIMEOUT_MS = 120_000

/** Runs a program. Returns the number at the beginning of its output, if there is one. */
const firstNumber = (program: string, args: readonly string[]): Promise<number | undefined> =>
  new Promise((done) => {
    const child = spawn(program, args, {
      cwd: '/',
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout: MEASURE_TIMEOUT_MS,
      killSignal: 'SIGKILL',
    })
    let text = ''
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk.toString()
    })
    child.once('error', () => done(undefined))
    // `du` fails when files vanish meanwhile, but still prints its count.
    child.once('close', () => done(/^\d+/.test(text) ? Number.parseInt(text, 10) : undefined))
  })

/**
 * Returns the disk space that a folder uses, in bytes; undefined when it cannot be measured in
 * time.
 */
export async function sizeOf(folder: string): Promise<number | undefined> {
  const bytes = await firstNumber('du', ['-sx', '-B1', '--', folder])
  const files = await firstNumber('du', ['-sx', '--inodes', '--', folder])
  return bytes === undefined ? undefined : bytes + (files ?? 0) * FILE_BYTES
}

/**
 * Measures a folder repeatedly until it exceeds its limit, and then calls `exceeded` once.
 * @param least minimum pause between two measurements in milliseconds.
 * @returns a function that stops the measurements.
 */
export function watchSize(
  folder: string,
  limit: number,
  least: number,
  exceeded: (bytes: number) => void,
): () => void {
  let timer: NodeJS.Timeout | undefined
  let stopped = false
  const measure = async (): Promise<void> => {
    const begin = performance.now()
    const bytes = await sizeOf(folder)
    if (stopped) return
    if (bytes !== undefined && bytes > limit) return exceeded(bytes)
    const wait = (performance.now() - begin) / MEASURING_SHARE
    again(Math.min(Math.max(wait, least), Math.max(least, MEASURE_MS.most)))
  }
  const again = (ms: number) => {
    timer = setTimeout(() => void measure(), ms)
    timer.unref()
  }
  again(least)
  return () => {
    stopped = true
    clearTimeout(timer)
  }
}

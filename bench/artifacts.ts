/**
 * Measures the throughput of artifact uploads and downloads, and the memory of a gateway during 100
 * transfers. For comparison, the same load runs on plain files with one fsync each.
 */
import { open, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { BLOCK, type Transfers, transfersOf } from './load/files.ts'
import { newFolder } from './support/baton.ts'
import { type Figures, inFlight, inTurn, type Terms, withEachSync } from './support/measure.ts'
import { COLLECT, settled } from './support/memory.ts'
import { resident } from './support/processes.ts'
import { startSplit } from './support/split.ts'
import { cell, note, table, whole } from './support/table.ts'

export const about =
  'MiB per second of uploaded and downloaded files, and the memory of a gateway during 100 transfers'

const MIB = 1_048_576
/** The size and number of files, and the number of concurrent transfers. */
interface Load {
  readonly mib: number
  readonly concurrency: number
  readonly count: number
}
const loadsOf = (quick: boolean): readonly Load[] =>
  quick
    ? [
        { mib: 1, concurrency: 10, count: 50 },
        { mib: 8, concurrency: 100, count: 100 },
      ]
    : [
        { mib: 1, concurrency: 1, count: 50 },
        { mib: 1, concurrency: 10, count: 200 },
        { mib: 1, concurrency: 100, count: 400 },
        { mib: 16, concurrency: 1, count: 16 },
        { mib: 16, concurrency: 10, count: 40 },
        { mib: 16, concurrency: 100, count: 100 },
      ]
const nameOf = ({ mib, concurrency }: Load): string => `${mib} MiB, ${concurrency} at a time`
/** Milliseconds between two measurements of a gateway's memory. */
const SAMPLE_MS = 20

interface Store extends Pick<Transfers, 'upload' | 'download' | 'remove'> {}

/** Returns a store of plain files in a folder. An upload ends after one fsync of its file. */
function plainFiles(folder: string): Store {
  let names = 0
  return {
    upload: async (size) => {
      const path = join(folder, String(names++))
      const file = await open(path, 'w')
      for (let left = size; left > 0; left -= BLOCK.length) await file.write(BLOCK)
      await file.sync()
      await file.close()
      return path
    },
    download: async (path) => (await readFile(path)).length,
    remove: (path) => rm(path),
  }
}

/**
 * Stores, reads and removes the files of a load. Returns the throughput of both directions in
 * MiB/s.
 */
async function rates(store: Store, load: Load): Promise<Figures> {
  const { mib, concurrency, count } = load
  const ids: string[] = []
  const timed = async (item: (i: number) => Promise<unknown>) => {
    const started = performance.now()
    await inFlight(concurrency, count, item)
    return (count * mib) / ((performance.now() - started) / 1000)
  }
  const up = await timed(async () => ids.push(await store.upload(mib * MIB)))
  const down = await timed(async (i) => {
    const size = await store.download(ids[i] ?? '')
    if (size !== mib * MIB) throw new Error(`${size} bytes came back instead of ${mib} MiB`)
  })
  await inFlight(8, count, (i) => store.remove(ids[i] ?? ''))
  return { [`${nameOf(load)} up`]: up, [`${nameOf(load)} down`]: down }
}
async function ratesOfAll(store: Store, loads: readonly Load[]): Promise<Record<string, number>> {
  const figures: Record<string, number> = {}
  for (const load of loads) Object.assign(figures, await rates(store, load))
  return figures
}

/**
 * Returns the maximum growth of a process's resident memory while `work` runs, in MiB.
 * @param before resident memory in bytes from which the growth is measured.
 */
async function peakOf(pid: number, before: number, work: () => Promise<unknown>): Promise<number> {
  let most = 0
  const sampling = setInterval(() => {
    most = Math.max(most, resident(pid))
  }, SAMPLE_MS)
  await work().finally(() => clearInterval(sampling))
  return (most - before) / MIB
}

async function measureBaton(sync: string, terms: Terms): Promise<Figures> {
  const server = await startSplit({
    sync,
    settings: { BATON_ARTIFACT_QUOTA: '0' },
    node: COLLECT,
  })
  const transfers = transfersOf(server)
  try {
    const { mib, concurrency, count } = loadsOf(terms.quick).at(-1) as Load
    const ids: string[] = []
    const upload = () =>
      inFlight(concurrency, count, async () => ids.push(await transfers.upload(mib * MIB)))
    const download = () => inFlight(concurrency, count, (i) => transfers.download(ids[i] ?? ''))
    // Warm-up: the first transfers load code and fill pools.
    await inFlight(10, 20, async () => {
      const id = await transfers.upload(MIB)
      await transfers.download(id)
      await transfers.remove(id)
    })
    const idle = await settled(server.gateway)
    const uploading = await peakOf(server.gateway, idle, upload)
    const between = await settled(server.gateway)
    const downloading = await peakOf(server.gateway, between, download)
    await inFlight(8, ids.length, (i) => transfers.remove(ids[i] ?? ''))
    return {
      ...(await ratesOfAll(transfers, loadsOf(terms.quick))),
      idle: idle / MIB,
      uploading,
      downloading,
    }
  } finally {
    transfers.close()
    await server.stop()
  }
}
async function measurePlain({ quick }: Terms): Promise<Figures> {
  const folder = newFolder()
  try {
    return await ratesOfAll(plainFiles(folder), loadsOf(quick))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Runs the benchmark and returns its tables. */
export async function bench(terms: Terms): Promise<string> {
  const loads = loadsOf(terms.quick)
  const last = nameOf(loads.at(-1) as Load)
  const measured = await inTurn(
    [
      ['plain files, one fsync each', () => measurePlain(terms)],
      ...withEachSync((sync) => measureBaton(sync, terms)),
    ],
    terms,
    (all) =>
      `${whole(all[`${last} up`] ?? Number.NaN)} MiB/s up, ${whole(all[`${last} down`] ?? Number.NaN)} down, ` +
      `memory +${whole(all['uploading'] ?? Number.NaN)} / +${whole(all['downloading'] ?? Number.NaN)} MiB`,
  )
  const of = (figures: Figures, name: string) => whole(figures[name] ?? Number.NaN)
  return (
    table(
      ['MiB/s: upload / download', ...loads.map(nameOf)],
      measured.map(([name, figures]) => [
        name,
        ...loads.map((load) =>
          cell(of(figures, `${nameOf(load)} up`), of(figures, `${nameOf(load)} down`)),
        ),
      ]),
    ) +
    '\n\n' +
    table(
      ['memory of a gateway, MiB', 'idle', `above it: uploads, ${last}`, `downloads, ${last}`],
      [
        ...measured
          .slice(1)
          .map(([name, figures]) => [
            name,
            of(figures, 'idle'),
            of(figures, 'uploading'),
            of(figures, 'downloading'),
          ]),
        ['*target*', '', '≤ 64', '≤ 64'],
      ],
    ) +
    note(
      'The gateway runs in a separate process. Its idle memory is measured after some transfers and ' +
        `garbage collection, and its maximum is sampled every ${SAMPLE_MS} ms.`,
      'Plain files are read from the cache of the operating system.',
    )
  )
}

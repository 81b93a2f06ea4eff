/**
 * Fills a store with many runs by writing to the journal directly, at hundreds of thousands of runs
 * per minute. A server first executes runs of every kind. Their journal entries are then copied
 * many times, with different ids and times, so the entries resemble those of real runs. Views are
 * built from the entries as usual. The checkpoints of the shards are moved past the entries, so the
 * owners of the shards skip them. The runs can therefore be listed, read and followed, but accept
 * no commands.
 */

import { join } from 'node:path'
import { envelopeText, parseEnvelope } from '../../nodes/host/memory/codec.ts'
import { createJournal } from '../../nodes/nats/journal/journal.ts'
import { createSnapshots } from '../../nodes/nats/journal/snapshots.ts'
import type { Nats } from '../../nodes/nats/server/connect.ts'
import { findServer } from '../../nodes/nats/server/install.ts'
import { startServer } from '../../nodes/nats/server/server.ts'
import { slotText } from '../../protocol/ids.ts'
import { startBaton } from '../support/baton.ts'
import { connectTo, SHARDS } from '../support/journal.ts'
import { Http } from './http.ts'
import { makeTemplates, type Template } from './templates.ts'

/** Number of runs per envelope: as many as the limits on events and bytes allow. */
const BATCH = 40
/** Milliseconds between the creation times of consecutive runs. */
const APART_MS = 5
const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const base32 = (value: number, length: number): string => {
  let text = ''
  for (let rest = value; text.length < length; rest = Math.floor(rest / 32))
    text = (ALPHABET[rest % 32] ?? '') + text
  return text
}

/** The amount of data that was written. */
export interface Filled {
  /** Number of frames of the runs in the project's stream. */
  readonly frames: number
  /** Number of bytes written to the journal. */
  readonly bytes: number
}

/**
 * Fills the data folder of a server that is started afterwards.
 * @param data the folder. No server may be running in it.
 * @param runs number of runs.
 * @param say receives progress.
 */
export async function fill(
  data: string,
  runs: number,
  say: (line: string) => void,
): Promise<Filled> {
  const server = await startBaton({ sync: '2m', data })
  const http = new Http(server.port, server.key, 4)
  const templates = await makeTemplates(server, http)
  http.close()
  await server.stop()

  const { path } = await findServer(process.env, say)
  const nats = await startServer({ binary: path, data: join(data, 'nats'), port: 0, sync: '2m' })
  const connection = await connectTo(data)
  const from = Date.now() - runs * APART_MS
  try {
    const done = await Promise.all(
      Array.from({ length: SHARDS }, (_, shard) =>
        fillShard(connection, shard, templates, runs, from),
      ),
    )
    return {
      frames: done.reduce((sum, { frames }) => sum + frames, 0),
      bytes: done.reduce((sum, { bytes }) => sum + bytes, 0),
    }
  } finally {
    await connection.close()
    await nats.stop()
  }
}

/** Writes a shard's part of the runs, and moves the shard's checkpoint past them. */
async function fillShard(
  nats: Nats,
  shard: number,
  all: readonly Template[],
  runs: number,
  from: number,
): Promise<{ frames: number; bytes: number }> {
  const journal = createJournal(nats, { timeout: 30_000 })
  const encoder = new TextEncoder()
  const last = await journal.last(0, shard)
  let sequence = last?.sequence ?? 0
  const { epoch } = parseEnvelope(envelopeText(last?.data ?? new Uint8Array()))
  const templates = all.map((template) => template(`${shard}.default`))
  let frames = 0
  let bytes = 0
  const mine = Math.floor(runs / SHARDS) + (shard < runs % SHARDS ? 1 : 0)
  for (let first = 0; first < mine; first += BATCH) {
    const texts: string[] = []
    let index = 0
    for (let i = first; i < Math.min(first + BATCH, mine); i++) {
      const at = from + (i * SHARDS + shard) * APART_MS
      const template = templates[i % templates.length]
      if (!template) break
      // The slot at the end of the id determines the shard.
      const id = `${base32(at, 10)}${base32(i * SHARDS + shard, 14)}${slotText(((i * 7) % 256) * SHARDS + shard)}`
      texts.push(template.text(id, at, index))
      index += template.events
      frames += template.frames
    }
    const data = encoder.encode(
      `{"v":1,"epoch":${epoch},"prev":${sequence},"entries":[${texts.join(',')}]}`,
    )
    const appended = await journal.append(0, shard, data, sequence, `fill-${shard}-${first}`)
    if (typeof appended !== 'object') throw new Error(`an envelope was not stored: ${appended}`)
    sequence = appended.sequence
    bytes += data.length
  }
  const snapshots = createSnapshots(nats)
  const key = `_/${shard}/checkpoint`
  const found = await snapshots.get(0, key)
  const mark = { ...(JSON.parse(new TextDecoder().decode(found?.data)) as object), sequence }
  if (
    (await snapshots.put(0, key, encoder.encode(JSON.stringify(mark)), found?.revision)) ===
    undefined
  )
    throw new Error('the checkpoint was not stored')
  return { frames, bytes }
}

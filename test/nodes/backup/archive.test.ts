/**
 * The files of a backup. Every archive that is written can be read, even with files of 8 GiB, and
 * so can the archives of earlier releases. Damaged, incomplete and hostile archives are refused.
 */
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { open, readdir, truncate } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { type ArchiveReader, readArchive, writeArchive } from '../../../nodes/backup/archive.ts'
import { type Manifest, readManifest, textOf, verify } from '../../../nodes/backup/manifest.ts'
import { BLOCK, decodeHeader, encodeHeader } from '../../../nodes/backup/tar.ts'
import { StartFault } from '../../../nodes/process/fault.ts'

const folder = mkdtempSync(join(tmpdir(), 'baton-archive-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))

/**
 * An archive of a release that encoded headers without a library. It contains `installation.json`,
 * `JOURNAL_0.tar.s2` (400 `a` and 200 `b`), the empty `OBJ_BLOBS.tar.s2`, and `manifest.json`.
 */
const EARLIER = gunzipSync(
  Buffer.from(
    'H4sIAAAAAAACA+3WvQrCMBQF4Mw+heQByrnGpuBmx1IsKM4SQaHSNtCkg5S+u9CxLg4a/+633GwZLvdwysZ5U1XG' +
      'l7aJLs424vkAQAPjxP0EKBEUK1AMhUQLECmtxRwigM550woE+esD9bIyV9t5uZL9IAfB/ktW7LebdX5A5E0buYUI' +
      'f/9ECpP7h4oV338Ihn2U44/gZP0ORZod0rxId+/L//F9l//g/A+hNk15Pjn/qu7/WP+Pp/tfJsT7D9P/z7atjZcr' +
      'GmYch4wx9jdu75lcOAAUAAA=',
    'base64',
  ),
)
const sha256 = (content: string): string => createHash('sha256').update(content).digest('hex')
const contentsOf = async (archive: ArchiveReader): Promise<Record<string, string>> =>
  Object.fromEntries(
    await Promise.all(archive.names.map(async (name) => [name, await textOf(archive, name)])),
  )
function archiveOf(name: string, ...blocks: readonly Buffer[]): string {
  const path = join(folder, name)
  writeFileSync(path, Buffer.concat(blocks))
  return path
}
const block = (text: string): Buffer => Buffer.concat([Buffer.from(text)], BLOCK)
const END = Buffer.alloc(2 * BLOCK)
/** Returns the size in a header as earlier releases read it. */
const earlierSize = (header: Buffer): number =>
  (header[124] ?? 0) & 0x80
    ? Number(header.readBigUInt64BE(128))
    : Number.parseInt(header.toString('latin1', 124, 135), 8)
/** Changes bytes of a header and corrects its checksum. */
function forged(header: Buffer, at: number, bytes: Buffer): Buffer {
  const changed = Buffer.from(header)
  bytes.copy(changed, at)
  changed.fill(' ', 148, 156)
  const sum = changed.reduce((all, byte) => all + byte, 0)
  changed.write(`${sum.toString(8).padStart(6, '0')}\0`, 148, 'latin1')
  return changed
}

t.test('a path that is in use is refused before anything is written', async (t) => {
  const empty = join(folder, 'empty.tar')
  mkdirSync(empty)
  await t.rejects(writeArchive(empty), StartFault, 'a tar file cannot replace an empty folder')
  const other = join(folder, 'empty')
  mkdirSync(other)
  await t.resolves((await writeArchive(other)).abandon(), 'a folder can')
})

t.test('a path at which nothing can be written is refused with advice', async (t) => {
  const file = join(folder, 'a file')
  writeFileSync(file, '')
  const paths = [join(file, 'b.tar'), join(file, 'deep', 'b')]
  // A recursive mkdir of Node does not end there.
  if (existsSync('/proc/self')) paths.push('/proc/none/b.tar')
  for (const path of paths)
    await t.rejects(writeArchive(path), {
      constructor: StartFault,
      message: /cannot be written to .*Choose another path with --to/,
    })
  const deep = await writeArchive(join(folder, 'created', 'folders', 'b.tar'))
  await t.resolves(deep.abandon())
})

t.test('files are written and read, in a folder and in a tar file', async (t) => {
  const contents = { 'a.json': '{}', empty: '', long: 'x'.repeat(1025), block: 'y'.repeat(BLOCK) }
  for (const place of ['all', 'all.tar']) {
    const path = join(folder, 'new', place)
    const writer = await writeArchive(path)
    for (const [name, content] of Object.entries(contents)) {
      const parts = content === '' ? [] : [content.slice(0, 1), content.slice(1)]
      t.strictSame(
        await writer.add(
          name,
          parts.map((part) => Buffer.from(part)),
        ),
        { bytes: content.length, sha256: sha256(content) },
      )
    }
    t.notOk(statSync(path, { throwIfNoEntry: false }), 'the name appears with the whole backup')
    await writer.finish()
    t.equal(statSync(path).mode & 0o077, 0, 'only the owner can read it')
    const archive = await readArchive(path)
    t.strictSame(await contentsOf(archive), contents)
    await t.rejects(writeArchive(path), StartFault, 'a backup is not overwritten')
    const abandoned = await writeArchive(join(folder, 'abandoned', place))
    await abandoned.add('a', [Buffer.from('a')])
    await abandoned.abandon()
  }
  t.strictSame((await readdir(join(folder, 'new'))).sort(), ['all', 'all.tar'])
  t.strictSame(await readdir(join(folder, 'abandoned')), [])
})

t.test('an archive of an earlier release is read', async (t) => {
  const archive = await readArchive(archiveOf('earlier.tar', EARLIER))
  t.strictSame(await contentsOf(archive), {
    'installation.json': '{"layout":"{}"}',
    'JOURNAL_0.tar.s2': `${'a'.repeat(400)}${'b'.repeat(200)}`,
    'OBJ_BLOBS.tar.s2': '',
    'manifest.json': '{"format":1}\n',
  })
})

t.test('earlier releases read the headers that are written now', async (t) => {
  const sizes = [0, 1, BLOCK, 8 ** 11 - 1, 8 ** 11, 8 ** 11 + 1, 2 ** 40 + 3]
  for (const size of sizes) {
    const header = encodeHeader('JOURNAL_0.tar.s2', size)
    t.equal(header.toString('latin1', 257, 265), 'ustar\x0000')
    t.equal(header.toString('latin1', 0, 17), 'JOURNAL_0.tar.s2\0')
    t.equal(earlierSize(header), size)
    t.strictSame(decodeHeader(header), { name: 'JOURNAL_0.tar.s2', size, file: true })
  }
})

t.test('files of 8 GiB are read in parts, and files after them are found', async (t) => {
  const size = 8 ** 11
  const path = archiveOf('large.tar', encodeHeader('large', size))
  // The content is a hole in the file, which occupies no space.
  await truncate(path, BLOCK + size)
  const file = await open(path, 'r+')
  await file.write(
    Buffer.concat([encodeHeader('last', 2), block('ok'), END]),
    0,
    null,
    BLOCK + size,
  )
  await file.close()
  const archive = await readArchive(path)
  t.strictSame(archive.names, ['large', 'last'])
  t.equal(await textOf(archive, 'last'), 'ok')
  let seen = 0
  for await (const part of archive.read('large')) {
    seen += part.length
    if (seen > 1_000_000) break
  }
  t.ok(seen < 2_000_000, 'reading stops with its reader')
})

t.test('a source is read only as fast as its content is written', async (t) => {
  const path = join(folder, 'paced.tar')
  const writer = await writeArchive(path)
  const sizes: number[] = []
  async function* content() {
    for (let part = 0; part < 4; part++) {
      sizes.push(statSync(`${path}.partial`).size)
      yield Buffer.alloc(1_000_000)
    }
  }
  await writer.add('paced', content())
  await writer.finish()
  t.strictSame(
    sizes,
    [0, 1, 2, 3].map((parts) => (parts === 0 ? 0 : BLOCK + parts * 1_000_000)),
  )
})

t.test('a damaged or incomplete archive is refused', async (t) => {
  const fails = (name: string, content: Buffer, message: RegExp) =>
    t.rejects(readArchive(archiveOf('bad.tar', content)), { name: 'StartFault', message }, name)
  const changed = (at: number, byte: number): Buffer => {
    const copy = Buffer.from(EARLIER)
    copy[at] = byte
    return copy
  }
  await fails('not an archive', block('hello'), /is not a backup/)
  await fails('first header', changed(3, 1), /is not a backup/)
  await fails('a name', changed(2 * BLOCK, 120), /damaged.* from byte 1024 on/)
  await fails('a size', changed(2 * BLOCK + 130, 55), /damaged.* from byte 1024 on/)
  const manifest = EARLIER.indexOf('manifest.json')
  await fails('within a file', EARLIER.subarray(0, manifest + BLOCK + 5), /ends within manifest/)
  for (const end of [manifest, manifest + 100])
    await t.rejects(
      readArchive(archiveOf('cut.tar', EARLIER.subarray(0, end))).then((archive) =>
        readManifest(archive, 'cut.tar'),
      ),
      /the backup was not completed/,
    )
  await t.rejects(readArchive(join(folder, 'absent')), /There is no backup/)
})

t.test('sizes that no file has are refused', async (t) => {
  const header = encodeHeader('a', 0)
  for (const size of [
    Buffer.from('-0000000777\0'),
    Buffer.from('size       \0'),
    Buffer.alloc(12, 0xff),
    Buffer.concat([Buffer.from([0x80]), Buffer.alloc(11, 0xff)]),
    Buffer.concat([Buffer.from([0x90]), Buffer.alloc(11)]),
    Buffer.from('77777777777\0'),
  ]) {
    const path = archiveOf('sizes.tar', encodeHeader('b', 0), forged(header, 124, size), END)
    await t.rejects(readArchive(path), /The backup is damaged/, size.toString('latin1'))
  }
})

t.test('only files of the archive itself are read', async (t) => {
  const types = ['1', '2', '3', '5', '6', 'x', 'g', 'L']
  const others = types.flatMap((type) => {
    const link = Buffer.from('/etc/passwd')
    return forged(forged(encodeHeader('manifest.json', 0), 156, Buffer.from(type)), 157, link)
  })
  const linked = await readArchive(archiveOf('links.tar', ...others, END))
  t.strictSame(linked.names, [])
  await t.rejects(readManifest(linked, 'links.tar'), StartFault)

  writeFileSync(join(folder, 'outside'), 'secret')
  const inside = join(folder, 'inside')
  mkdirSync(inside)
  const path = archiveOf('names.tar', encodeHeader('../outside', 4), block('mine'), END)
  t.equal(await textOf(await readArchive(path), '../outside'), 'mine', 'names are only keys')
  const facts = { bytes: 6, sha256: sha256('secret') }
  const manifest = { installation: { file: '../outside', ...facts }, streams: [] as const }
  const verified = async (place: string): Promise<void> => {
    const archive = await readArchive(place)
    await verify(archive, { ...base, ...manifest }, () => {})
  }
  await t.rejects(verified(inside), /\.\.\/outside is missing/)
  t.equal(readFileSync(join(folder, 'outside'), 'utf8'), 'secret')
})

const base: Omit<Manifest, 'installation' | 'streams'> = {
  format: 1,
  created_at: '2026-01-01T00:00:00.000Z',
  baton: '0',
  nats_server: '0',
  partitions: 1,
  shards: 1,
  replicas: 1,
}

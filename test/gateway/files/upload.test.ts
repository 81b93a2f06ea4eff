/**
 * Checks of an upload before it is stored: forms, file types, pages of PDFs, and the limit on
 * buffered bytes.
 */
import { deflateSync } from 'node:zlib'
import fc from 'fast-check'
import t from 'tap'
import { inspect } from '../../../gateway/files/file.ts'
import { boundaryOf, type Part, partsOf } from '../../../gateway/files/multipart.ts'
import { pagesOf } from '../../../gateway/files/pdf.ts'
import { createSemaphore } from '../../../gateway/files/semaphore.ts'
import { withFileBytes } from '../../../gateway/sessions/inline.ts'
import { isRefusal } from '../../../protocol/errors.ts'
import { limits } from '../../../protocol/sessions/limits.ts'

const form = (
  parts: readonly { name: string; filename?: string; bytes: Buffer }[],
  boundary: string,
): Buffer =>
  Buffer.concat([
    ...parts.flatMap(({ name, filename, bytes }) => [
      Buffer.from(
        `--${boundary}\r\nContent-Disposition: form-data; name="${name}"` +
          (filename === undefined ? '' : `; filename="${filename}"\r\nContent-Type: image/png`) +
          '\r\n\r\n',
      ),
      bytes,
      Buffer.from('\r\n'),
    ]),
    Buffer.from(`--${boundary}--\r\n`),
  ])

t.test('any form is parsed into the parts that it was made of', async () => {
  const part = fc.record({
    name: fc.stringMatching(/^[a-z_]{1,8}$/),
    bytes: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  })
  void fc.assert(
    fc.property(fc.array(part, { maxLength: 6 }), (parts) => {
      const found = partsOf(form(parts, 'b0undary'), 'b0undary')
      if (typeof found === 'string') throw new Error(found)
      if (
        found.length !== parts.length ||
        !found.every(
          ({ name, bytes }, index) =>
            name === parts[index]?.name && bytes.equals(parts[index]?.bytes),
        )
      )
        throw new Error('other parts')
    }),
  )
  // Any input is parsed or refused. No input causes an exception.
  void fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), fc.nat(300), (noise, cut) => {
      const whole = form([{ name: 'file', filename: 'a', bytes: Buffer.from(noise) }], 'b')
      partsOf(whole.subarray(0, cut), 'b')
      partsOf(Buffer.from(noise), 'b')
    }),
  )
})

t.test('forms in the formats of common clients', async (t) => {
  t.equal(boundaryOf('multipart/form-data; boundary=abc'), 'abc')
  t.equal(boundaryOf('Multipart/Form-Data; charset=utf-8; boundary="a b:c"'), 'a b:c')
  for (const type of [
    undefined,
    'multipart/mixed; boundary=a',
    'multipart/form-data',
    'application/json',
  ])
    t.equal(boundaryOf(type), undefined)
  const named = (disposition: string) =>
    (
      partsOf(
        Buffer.from(`--b\r\ncontent-disposition: form-data; ${disposition}\r\n\r\nx\r\n--b--`),
        'b',
      )[0] as Part
    ).filename
  t.equal(named('name="file"; filename="a \\"b\\".png"'), 'a "b".png')
  t.equal(named('name=file; filename="a %22b%22.png"'), 'a "b".png')
  t.equal(named('name="file"; filename="x.png"; filename*=UTF-8\'\'%C3%A4.png'), 'ä.png')
  t.equal(partsOf(Buffer.from('--b\r\n\r\nx\r\n--b--'), 'b'), 'has a part without a name')
  t.equal(
    partsOf(Buffer.from('--b\r\nContent-Disposition: form-data; name="a"\r\n\r\nx'), 'b'),
    'is truncated',
  )
  t.equal(
    partsOf(
      form(
        Array.from({ length: 21 }, () => ({ name: 'a', bytes: Buffer.from('x') })),
        'b',
      ),
      'b',
    ),
    'has more than 20 parts',
  )
  t.equal(partsOf(Buffer.from('nothing'), 'b'), 'has no part')
})

const png = Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), Buffer.alloc(20)])
/** Creates a PDF with `pages` pages, and `packed` more pages in an object stream. */
const pdf = (pages: number, packed = 0, more = ''): Buffer => {
  const objects = Buffer.from(
    Array.from({ length: packed }, (_, n) => `<< /Type /Page /Parent ${n} 0 R >>`).join('\n'),
  )
  return Buffer.concat([
    Buffer.from(
      '%PDF-1.7\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n2 0 obj\n' +
        `<< /Type /Pages /Count ${pages + packed} >>\nendobj\n` +
        Array.from({ length: pages }, (_, n) => `${n + 9} 0 obj\n<</Type/Page>>\nendobj\n`).join(
          '',
        ) +
        '7 0 obj\n<< /Length 20 >>\nstream\n/Type /Page is a text\nendstream\nendobj\n',
    ),
    ...(packed > 0
      ? [
          Buffer.from(`8 0 obj\n<< /Type /ObjStm /Filter /FlateDecode >>\nstream\n`),
          deflateSync(objects),
          Buffer.from('\nendstream\nendobj\n'),
        ]
      : []),
    Buffer.from(`trailer\n<< /Root 1 0 R ${more}>>\n%%EOF\n`),
  ])
}

t.test('pages of a PDF are counted, also in object streams', async (t) => {
  t.equal(await pagesOf(pdf(3)), 3)
  t.equal(await pagesOf(pdf(1, 12)), 13)
  t.equal(await pagesOf(pdf(0, 2)), 2)
  t.equal(await pagesOf(pdf(0)), 'unreadable')
  t.equal(await pagesOf(pdf(2, 0, '/Encrypt 9 0 R ')), 'unreadable')
  t.equal(
    await pagesOf(
      Buffer.from(
        '%PDF-1.7 8 0 obj << /Type /ObjStm /Filter /FlateDecode >>\nstream\nrubbish endstream',
      ),
    ),
    'unreadable',
  )
  const before = process.cpuUsage().user
  await pagesOf(Buffer.from(`%PDF-1.7 ${'stream\nendstream'.repeat(300_000)}`))
  t.ok((process.cpuUsage().user - before) / 1000 < 3000, 'a hostile PDF costs little time')
})

t.test('the type of a file is detected from its bytes', async (t) => {
  const kind = async (bytes: Buffer, name = 'a', hint?: string) => {
    const facts = await inspect(bytes, name, hint)
    return isRefusal(facts) ? facts.refused : `${facts.facts.as} ${facts.facts.mime_type}`
  }
  t.equal(await kind(png, 'a.txt', 'text/plain'), 'image image/png')
  t.equal(await kind(Buffer.from([0xff, 0xd8, 0xff, 0xe0])), 'image image/jpeg')
  t.equal(await kind(Buffer.from('GIF89a…')), 'image image/gif')
  t.equal(await kind(Buffer.from('RIFFxxxxWEBPVP8 ')), 'image image/webp')
  t.equal(await kind(pdf(1)), 'document application/pdf')
  t.equal(await kind(Buffer.from('# Plan\n'), 'PLAN.MD'), 'document text/markdown')
  t.equal(await kind(Buffer.from('a,b\n'), 'a.csv', 'text/csv'), 'document text/plain')
  t.equal(await kind(Buffer.from('x'), 'a', 'text/markdown'), 'document text/markdown')
  for (const odd of [
    Buffer.from('PK\x03\x04'),
    Buffer.from([0xc3, 0x28]),
    Buffer.from('a\0b'),
    Buffer.alloc(0),
  ])
    t.equal(await kind(odd, 'a.png', 'image/png'), 'bad_request')
  t.match(await inspect(pdf(2, 2), 'p', undefined), {
    facts: { page_count: 4, sha256: /^[0-9a-f]{64}$/, size_bytes: pdf(2, 2).length },
  })
  t.match(await inspect(pdf(limits.file.pages + 1), 'p', undefined), {
    refused: 'payload_too_large',
    details: { limit: limits.file.pages },
  })
  t.match(await inspect(Buffer.alloc(limits.file.text + 1, 'a'), 'a', undefined), {
    refused: 'payload_too_large',
    details: { limit: limits.file.text },
  })
  t.equal(await kind(Buffer.alloc(limits.file.text, 'a')), 'document text/plain')
  t.match(await inspect(Buffer.concat([png, Buffer.alloc(limits.file.bytes)]), 'a', undefined), {
    refused: 'payload_too_large',
    details: { limit: limits.file.bytes },
  })
})

t.test('uploads wait for buffer space in FIFO order', async (t) => {
  const room = createSemaphore(100)
  const [a, b] = [await room.acquire(60), await room.acquire(40)]
  const order: string[] = []
  const large = room.acquire(300).then((leave) => {
    order.push('large')
    return leave
  })
  const small = room.acquire(1).then((leave) => {
    order.push('small')
    return leave
  })
  a()
  a()
  await Promise.resolve()
  t.same(order, [], 'a small request does not overtake a large one')
  b()
  ;(await large)()
  ;(await small)()
  t.same(order, ['large', 'small'])
})

t.test('an immediate reservation is refused while others wait or hold the space', async (t) => {
  const room = createSemaphore(100)
  const first = room.tryAcquire(60)
  t.equal(room.tryAcquire(41), undefined)
  const waiting = room.acquire(50)
  t.equal(room.tryAcquire(1), undefined, 'it does not overtake')
  first?.()
  first?.()
  const second = await waiting
  t.equal(room.held, 50)
  second()
  t.ok(room.tryAcquire(300), 'more than the size is granted when nothing is reserved')
})

t.test('a request includes the files that fit and that the model reads', async (t) => {
  const store = new Map([
    ['file/p/art_1', Buffer.from('text "of" a file')],
    ['file/p/art_2', png],
  ])
  const files = { get: async (name: string) => store.get(name) }
  const block = (id: string, media_type: string, size_bytes: number) => ({
    type: media_type.startsWith('image') ? 'image' : 'document',
    title: id,
    media_type,
    size_bytes,
    source: { type: 'artifact', artifact_id: id },
  })
  const messages = [
    {
      role: 'user' as const,
      content: [
        block('art_1', 'text/plain', 16),
        block('art_2', 'image/png', png.length),
        block('art_3', 'image/png', 3),
        { type: 'text', text: 'hi' },
      ],
    },
  ]
  const sent = async (most: number, reads = true) =>
    (await withFileBytes(files, 'p', messages, { most, reads: () => reads }))[0]?.content
  t.match(await sent(1000), [
    { source: { type: 'text', data: 'text "of" a file' } },
    { source: { type: 'base64', media_type: 'image/png', data: png.toString('base64') } },
    { type: 'text', text: /"art_3".*no longer exists/ },
    { text: 'hi' },
  ])
  t.match(
    await sent(1000, false),
    [{ source: { type: 'text' } }, { type: 'text', text: /cannot read files/ }, {}, {}],
    'every model reads texts',
  )
  t.match(await sent(30), [
    { source: { type: 'text' } },
    { type: 'text', text: /too many/ },
    {},
    {},
  ])
  t.match(
    await sent(17),
    [{ type: 'text', text: /too many/ }, {}, {}, {}],
    'quotes count as they are sent',
  )
  await t.rejects(
    withFileBytes(
      {
        get: async () => {
          throw new Error('down')
        },
      },
      'p',
      messages,
      { most: 1000, reads: () => true },
    ),
    /down/,
  )
})

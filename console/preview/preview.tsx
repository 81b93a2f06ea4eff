/**
 * Shows the bytes of a file. Content is never inserted into the document of the console as HTML:
 * images, audio, video and PDF use blob URLs, HTML is in a frame without scripts, and everything
 * else is rendered from its text. A PDF file that has a URL on the service is shown from that URL,
 * because the response is sandboxed.
 *
 * Invariant: no more of a file is loaded than the limit for its kind, except by the browser's PDF
 * viewer from a URL on the service.
 */
import type { ComponentChildren } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { ApiError } from '../api/client.ts'
import { Button } from '../design/button.tsx'
import { Empty, Failure, Notice, Skeleton } from '../design/states.tsx'
import { Tree } from '../design/tree.tsx'
import { VirtualList } from '../design/virtual/list.tsx'
import { Markdown } from '../markdown/markdown.tsx'
import { currentUrl, setQuery } from '../router/router.ts'
import { formatBytes } from '../text/format.ts'
import { readCsv } from './csv.ts'
import { looksLikeText, mediaTypeOf, type PreviewKind, previewKind } from './kind.ts'
import { diffTone, Lines } from './lines.tsx'
import { previewText as text } from './text.ts'

/** The beginning of a file. */
export interface FileStart {
  readonly bytes: Uint8Array<ArrayBuffer>
  /** Whether `bytes` is the whole file. */
  readonly complete: boolean
}
/**
 * Loads at most `most` bytes of a file.
 * @throws ApiError if a request fails.
 */
export type LoadFile = (most: number, signal: AbortSignal) => Promise<FileStart>

const MIB = 1_048_576
/** Maximum number of bytes of a text file that are loaded for the preview. */
const MAX_TEXT_BYTES = 2 * MIB
/**
 * Maximum length of Markdown in characters. A longer text is shown as plain text, because the whole
 * document would have to be laid out at once.
 */
const MAX_MARKDOWN_LENGTH = 200_000
/** Maximum size in bytes of an image, audio, video or PDF file that is loaded for the preview. */
const MAX_MEDIA_BYTES = 64 * MIB
const asMedia: ReadonlySet<PreviewKind> = new Set(['image', 'audio', 'video', 'pdf'])
const hasTwoViews: ReadonlySet<PreviewKind> = new Set(['markdown', 'json', 'csv', 'html'])

/**
 * Loads and shows a file. `version` changes when the bytes of the file have changed. `address` is
 * the URL of the file on the service, if it has one.
 */
export function Preview({
  name,
  mime = '',
  size,
  version,
  address,
  load,
}: {
  readonly name: string
  readonly mime?: string
  readonly size: number
  readonly version: string
  readonly address?: string
  readonly load: LoadFile
}) {
  const kind = previewKind(mime, name)
  const media = asMedia.has(kind)
  // The address is used only for `application/pdf`, because the service sends a PDF file with any
  // other media type as a download.
  const direct = kind === 'pdf' && mime === 'application/pdf' ? address : undefined
  const tooLarge = media && direct === undefined && size > MAX_MEDIA_BYTES
  const [start, setStart] = useState<FileStart>()
  const [error, setError] = useState<ApiError>()
  const [attempt, setAttempt] = useState(0)
  useEffect(() => {
    if (tooLarge || direct !== undefined) return
    const control = new AbortController()
    setError(undefined)
    load(media ? MAX_MEDIA_BYTES : MAX_TEXT_BYTES, control.signal).then(
      setStart,
      (fault: unknown) => {
        if (control.signal.aborted) return
        setError(fault instanceof ApiError ? fault : new ApiError(0, 'unreachable', String(fault)))
      },
    )
    return () => control.abort()
  }, [version, attempt])
  if (tooLarge) return <Empty title={text.tooLarge(formatBytes(size))}>{text.noneHint}</Empty>
  if (direct !== undefined)
    return (
      <div class="preview">
        <PdfFrame address={direct} label={text.content(name)} />
      </div>
    )
  if (error) return <Failure error={error} retry={() => setAttempt(attempt + 1)} />
  if (!start) return <Skeleton lines={8} />
  if (start.bytes.length === 0) return <Empty icon="artifacts" title={text.empty} />
  return (
    <div class="preview">
      {!start.complete && (
        <Notice tone="warn">{text.cut(formatBytes(start.bytes.length), formatBytes(size))}</Notice>
      )}
      {media ? (
        <Media kind={kind} type={mediaTypeOf(kind, mime, name)} name={name} bytes={start.bytes} />
      ) : (
        <Words kind={kind} name={name} start={start} />
      )}
    </div>
  )
}

/** Returns a blob URL of the bytes, which is revoked when they change or the component unmounts. */
function useBlobAddress(bytes: Uint8Array<ArrayBuffer>, type: string): string {
  const address = useMemo(() => URL.createObjectURL(new Blob([bytes], { type })), [bytes, type])
  useEffect(() => () => URL.revokeObjectURL(address), [address])
  return address
}

function Media({
  kind,
  type,
  name,
  bytes,
}: {
  readonly kind: PreviewKind
  readonly type: string
  readonly name: string
  readonly bytes: Uint8Array<ArrayBuffer>
}) {
  const address = useBlobAddress(bytes, type)
  const label = text.content(name)
  if (kind === 'image') return <img class="preview-media" src={address} alt={label} />
  if (kind === 'audio')
    // biome-ignore lint/a11y/useMediaCaption: files have no captions
    return <audio class="preview-media" src={address} controls aria-label={label} />
  if (kind === 'video')
    // biome-ignore lint/a11y/useMediaCaption: files have no captions
    return <video class="preview-media" src={address} controls aria-label={label} />
  return <PdfFrame address={address} label={label} />
}

/**
 * Shows a PDF file in the browser's own viewer, which does not work in a frame with `sandbox`. Both
 * the blob and the response of the service have the PDF media type, so the file is never parsed as
 * HTML. The response also has a policy with `sandbox` (`gateway/files/content.ts`).
 */
const PdfFrame = ({ address, label }: { readonly address: string; readonly label: string }) =>
  navigator.pdfViewerEnabled ? (
    <iframe class="preview-frame" src={address} title={label} />
  ) : (
    <Empty title={text.noPdf} />
  )

/** A text file, rendered in its format or as plain lines. */
function Words({
  kind,
  name,
  start: { bytes, complete },
}: {
  readonly kind: PreviewKind
  readonly name: string
  readonly start: FileStart
}) {
  const raw = currentUrl.value.query.get('view') === 'text'
  const value = useMemo(() => new TextDecoder().decode(bytes), [bytes])
  if (kind === 'none' && !looksLikeText(bytes))
    return <Empty title={text.none}>{text.noneHint}</Empty>
  const lines = (
    <Lines value={value} label={text.content(name)} {...(kind === 'diff' && { tone: diffTone })} />
  )
  if (!hasTwoViews.has(kind)) return lines
  return (
    <>
      <div class="row" role="group" aria-label={text.shown}>
        <Choice on={!raw} view="">
          {text.rendered}
        </Choice>
        <Choice on={raw} view="text">
          {text.raw}
        </Choice>
      </div>
      {raw ? lines : <Rendered kind={kind} value={value} complete={complete} lines={lines} />}
    </>
  )
}
const Choice = ({
  on,
  view,
  children,
}: {
  readonly on: boolean
  readonly view: string
  readonly children: string
}) => (
  <Button kind="quiet" pressed={on} onClick={() => setQuery({ view })}>
    {children}
  </Button>
)

function Rendered({
  kind,
  value,
  complete,
  lines,
}: {
  readonly kind: PreviewKind
  readonly value: string
  readonly complete: boolean
  readonly lines: ComponentChildren
}) {
  if (kind === 'markdown')
    return value.length <= MAX_MARKDOWN_LENGTH ? (
      <Markdown text={value} />
    ) : (
      <>
        <p class="soft">{text.longMarkdown}</p>
        {lines}
      </>
    )
  if (kind === 'csv') return <CsvTable value={value} />
  if (kind === 'html') return <HtmlFrame value={value} />
  const parsed = parse(value)
  if (complete && parsed) return <Tree value={parsed.value} open={2} />
  return (
    <>
      {complete && <p class="soft">{text.notJson}</p>}
      {lines}
    </>
  )
}
function parse(value: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(value) }
  } catch {
    return undefined
  }
}

/**
 * Shows HTML in a frame with an opaque origin and without scripts. The frame inherits the content
 * security policy of the console.
 */
function HtmlFrame({ value }: { readonly value: string }) {
  const bytes = useMemo(() => new TextEncoder().encode(value), [value])
  const address = useBlobAddress(bytes, 'text/html; charset=utf-8')
  return (
    <>
      <iframe class="preview-frame" src={address} sandbox="" title={text.rendered} />
      <p class="small soft">{text.frameHint}</p>
    </>
  )
}

/** Maximum number of records of a CSV file that are shown. */
const MAX_RECORDS = 20_000
/** Maximum number of columns of a CSV file that are shown. */
const MAX_COLUMNS = 60
/** Maximum number of characters of a CSV field that are shown. */
const MAX_CELL_LENGTH = 300
function CsvTable({ value }: { readonly value: string }) {
  const records = useMemo(() => readCsv(value, undefined, MAX_RECORDS + 1), [value])
  const [head, ...rest] = records
  if (!head) return <Empty title={text.empty} />
  const count = Math.min(MAX_COLUMNS, head.fields.length)
  const cut = (field: string | undefined): string => (field ?? '').slice(0, MAX_CELL_LENGTH)
  return (
    <>
      <VirtualList
        items={rest}
        line={32}
        columns={`4rem repeat(${count}, minmax(9rem, 18rem))`}
        height={`min(38rem, ${(rest.length + 1) * 32 + 4}px)`}
        label={text.preview}
        head={['#', ...head.fields.slice(0, count).map((name, at) => cut(name) || String(at + 1))]}
        keyOf={({ line }) => String(line)}
        render={({ line, fields }) => ({
          cells: [
            <span class="soft" key="line">
              {line}
            </span>,
            ...Array.from({ length: count }, (_, at) => (
              <span class="user-text" key={at}>
                {cut(fields[at])}
              </span>
            )),
          ],
        })}
      />
      {records.length > MAX_RECORDS && <p class="small soft">{text.recordsCut(MAX_RECORDS)}</p>}
    </>
  )
}

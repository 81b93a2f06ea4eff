/**
 * Serves the console: one empty document for all its addresses, and the files of its program. The
 * document is the same for all users. The program signs in and sends its own requests.
 *
 * Invariants:
 * C1. Only scripts with the nonce of the document, and the scripts that they load, are executed.
 *     User content that this service delivers from the same origin is therefore never executed.
 * C2. The name of a file contains a hash of its content, so the file may be cached indefinitely.
 *     The document is not cached.
 */
import { productName } from '../../protocol/naming.ts'
import type { Incoming } from '../http/request.ts'
import type { Answer } from '../http/respond.ts'
import type { World } from '../ports.ts'
import { escapeHtml } from './answer/page.ts'

/** A file of the console, in plain and in compressed form. */
export interface ConsoleFile {
  readonly type: string
  readonly plain: Uint8Array
  readonly br: Uint8Array
  readonly gzip: Uint8Array
}
/**
 * The files of the console by address, and the addresses of its program, its style sheet and its
 * SharedWorker.
 */
export interface ConsoleFiles {
  readonly files: ReadonlyMap<string, ConsoleFile>
  readonly script: string
  readonly style: string
  readonly worker: string
}

/** The addresses of the console; `*` matches any further path. */
const PATHS = [
  '/',
  '/sign-in',
  '/p/*',
  '/account',
  '/account/*',
  '/organization',
  '/organization/*',
] as const

/** Number of random bytes in the nonce of the content security policy. */
const NONCE_BYTES = 16
const policyOf = (nonce: string): string =>
  [
    "default-src 'none'",
    `script-src 'nonce-${nonce}' 'strict-dynamic'`,
    `style-src 'self' 'nonce-${nonce}'`,
    "connect-src 'self'",
    "worker-src 'self'",
    "img-src 'self' data: blob:",
    "media-src 'self' blob:",
    "frame-src 'self' blob:",
    "font-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    'trusted-types console',
  ].join('; ')

const document = (
  product: string,
  { script, style, worker }: ConsoleFiles,
  nonce: string,
): string => `<!doctype html>
<html lang="en" data-product="${product}" data-nonce="${nonce}" data-worker="${worker}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${product}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${style}">
<script type="module" nonce="${nonce}" src="${script}"></script>
</head>
<body>
<div id="app"><noscript><p>This page needs JavaScript.</p></noscript></div>
</body>
</html>
`

/**
 * Creates the handlers of the document and of the files, by path.
 * @param load loads the files at the first request, and again after a failure. Without it, there is
 * no console, and `/` redirects to the API reference.
 */
export function openConsole(
  { settings, random }: Pick<World, 'settings' | 'random'>,
  load: (() => Promise<ConsoleFiles>) | undefined,
): Readonly<Record<string, (incoming: Incoming) => Promise<Answer>>> {
  if (!load) return { '/': async () => ({ status: 302, headers: { Location: '/docs' } }) }
  const product = escapeHtml(productName(settings.brand))
  let loading: Promise<ConsoleFiles> | undefined
  const loaded = (): Promise<ConsoleFiles> =>
    (loading ??= load().catch((error: unknown) => {
      // The next request tries again.
      loading = undefined
      throw error
    }))
  const shown = async (): Promise<Answer> => {
    const nonce = Buffer.from(random(NONCE_BYTES)).toString('base64')
    return {
      status: 200,
      text: document(product, await loaded(), nonce),
      type: 'text/html; charset=utf-8',
      headers: {
        'Content-Security-Policy': policyOf(nonce),
        'Cache-Control': 'no-store',
        'Referrer-Policy': 'same-origin',
        'X-Content-Type-Options': 'nosniff',
        'X-Robots-Tag': 'noindex',
        'Cross-Origin-Opener-Policy': 'same-origin',
      },
    }
  }
  return {
    ...Object.fromEntries(PATHS.map((path) => [path, shown])),
    async '/console/:file'(incoming) {
      const found = (await loaded()).files.get(`/console/${incoming.slots[0] ?? ''}`)
      // A page of another version may request a file that this version does not have.
      if (!found)
        return {
          status: 404,
          text: '',
          type: 'text/plain',
          headers: { 'Cache-Control': 'no-store' },
        }
      const accepted = incoming.further('accept-encoding') ?? ''
      const encoding = (['br', 'gzip'] as const).find((one) =>
        new RegExp(`(^|[ ,])${one}(?! *; *q=0(\\.0*)?( |,|$))`).test(accepted),
      )
      return {
        status: 200,
        text: found[encoding ?? 'plain'],
        type: found.type,
        headers: {
          'Cache-Control': 'public, max-age=31536000, immutable',
          'X-Content-Type-Options': 'nosniff',
          Vary: 'Accept-Encoding',
          ...(encoding && { 'Content-Encoding': encoding }),
        },
      }
    },
  }
}

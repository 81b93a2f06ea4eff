/**
 * Serves the API reference: the OpenAPI and AsyncAPI documents, and a page that shows the OpenAPI
 * document and links to both. The page loads nothing from other sites. The documents are generated
 * in `protocol/openapi/`.
 */
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { productName } from '../../protocol/naming.ts'
import { asyncapi } from '../../protocol/openapi/asyncapi.ts'
import { openapi } from '../../protocol/openapi/document.ts'
import type { Examples } from '../../protocol/openapi/examples.ts'
import type { Answer } from '../http/respond.ts'
import type { GatewaySettings } from '../ports.ts'
import { escapeHtml } from './answer/page.ts'

const page = (product: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${product} API</title>
<link rel="stylesheet" href="/docs/swagger-ui.css">
<script src="/docs/swagger-ui-bundle.js" defer></script>
<script src="/docs/start.js" defer></script>
</head>
<body style="margin:0">
<p style="margin:1em;font-family:sans-serif"><a href="/v1/openapi.json">OpenAPI document</a> ·
<a href="/v1/asyncapi.json">AsyncAPI document of event streams and the worker socket</a></p>
<div id="reference"></div>
</body>
</html>
`
const start =
  "SwaggerUIBundle({ url: '/v1/openapi.json', dom_id: '#reference', " +
  "deepLinking: true, docExpansion: 'none', validatorUrl: null })\n"
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; " +
  "img-src 'self' data:; connect-src 'self'; font-src 'none'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/**
 * Generates the OpenAPI document. Reads the examples from disk, so it is called only when the
 * document is first requested.
 */
async function documentOf(settings: GatewaySettings): Promise<string> {
  const file = new URL('../../protocol/openapi/examples.json', import.meta.url)
  const examples = JSON.parse(await readFile(file, 'utf8')) as Examples
  return JSON.stringify(openapi({ ...settings, examples }))
}

/** Creates the handlers of the documents, the page and its files, by path. */
export function openDocs(
  settings: GatewaySettings,
): Readonly<Record<string, () => Promise<Answer>>> {
  let document: Promise<string> | undefined
  let streams: string | undefined
  const files = new Map<string, Promise<Uint8Array>>()
  const file = (name: string, type: string) => async (): Promise<Answer> => {
    let bytes = files.get(name)
    if (!bytes)
      files.set(
        name,
        (bytes = readFile(createRequire(import.meta.url).resolve(`swagger-ui-dist/${name}`))),
      )
    return {
      status: 200,
      text: await bytes,
      type,
      headers: { 'Cache-Control': 'public, max-age=86400' },
    }
  }
  return {
    '/v1/openapi.json': async () => ({
      status: 200,
      text: await (document ??= documentOf(settings)),
      type: 'application/json',
    }),
    '/v1/asyncapi.json': async () => ({
      status: 200,
      text: (streams ??= JSON.stringify(asyncapi(settings))),
      type: 'application/json',
    }),
    '/docs': async () => ({
      status: 200,
      text: page(escapeHtml(productName(settings.brand))),
      type: 'text/html; charset=utf-8',
      headers: { 'Content-Security-Policy': policy },
    }),
    '/docs/swagger-ui.css': file('swagger-ui.css', 'text/css; charset=utf-8'),
    '/docs/swagger-ui-bundle.js': file('swagger-ui-bundle.js', 'text/javascript; charset=utf-8'),
    '/docs/start.js': async () => ({
      status: 200,
      text: start,
      type: 'text/javascript; charset=utf-8',
    }),
  }
}

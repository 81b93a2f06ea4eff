/** The API reference: the OpenAPI document of the table and a page that shows it, served without any request elsewhere. */
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { openapi } from '../protocol/openapi.ts'
import type { GatewaySettings } from './ports.ts'
import type { Answer } from './respond.ts'

const page = (brand: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${brand} API</title>
<script type="module" src="/docs/rapidoc.js"></script>
</head>
<body style="margin:0">
<rapi-doc spec-url="/v1/openapi.json" load-fonts="false" render-style="focused" show-header="false" allow-server-selection="false" allow-spec-file-download="true"
  regular-font="system-ui, sans-serif" mono-font="ui-monospace, monospace" schema-style="table" persist-auth="false"></rapi-doc>
</body>
</html>
`
const escape = (text: string) => text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)
const policy = "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; font-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** Answers by path. */
export function openDocs(settings: GatewaySettings): Readonly<Record<string, () => Promise<Answer>>> {
  let document: string | undefined
  let script: Promise<Uint8Array> | undefined
  return {
    '/v1/openapi.json': async () => ({ status: 200, text: (document ??= JSON.stringify(openapi(settings))), type: 'application/json' }),
    '/docs': async () => ({ status: 200, text: page(escape(settings.brand)), type: 'text/html; charset=utf-8', headers: { 'Content-Security-Policy': policy } }),
    '/docs/rapidoc.js': async () => {
      script ??= readFile(createRequire(import.meta.url).resolve('rapidoc/dist/rapidoc-min.js'))
      return { status: 200, text: await script, type: 'text/javascript; charset=utf-8', headers: { 'Cache-Control': 'public, max-age=86400' } }
    },
    '/': async () => ({ status: 302, headers: { Location: '/docs' } }),
  }
}

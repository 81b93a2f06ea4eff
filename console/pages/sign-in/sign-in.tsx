/**
 * The page on which people sign in with a key or token, with a one-time link, or with the OpenID
 * provider. The code of a link is in the fragment of its URL, which browsers do not send.
 */
import { useEffect, useState } from 'preact/hooks'
import { ApiError } from '../../api/client.ts'
import { Button } from '../../design/button.tsx'
import { TextField } from '../../design/field.tsx'
import { Notice } from '../../design/states.tsx'
import { currentUrl, go } from '../../router/router.ts'
import { identity, signedIn, signIn } from '../../shell/session.ts'
import { returnTarget } from './return-target.ts'
import { signInText as text } from './text.ts'

/** Returns the message for the error code of a failed sign-in with the provider. */
function failureText(code: string): string {
  const known = Object.hasOwn(text, code) ? text[code as keyof typeof text] : undefined
  return typeof known === 'string' ? known : text.failed
}

/** Shows the page. A one-time code in the URL is used immediately. */
export function SignIn() {
  const [key, setKey] = useState('')
  const [fault, setFault] = useState<string>()
  const [code, setCode] = useState(() => new URLSearchParams(location.hash.slice(1)).get('code'))
  const { query } = currentUrl.value
  const back = returnTarget(query.get('return'))
  const failure = query.get('error')
  const ways = identity.value?.ways
  const enter = async (way: Parameters<typeof signIn>[0]): Promise<void> => {
    setFault(undefined)
    try {
      await signIn(way)
      go(back, { replace: true })
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      setCode(null)
      setFault(error.message)
    }
  }
  useEffect(() => {
    if (!code) return
    // The code can be used only once, and must not stay in the history of the browser.
    history.replaceState(history.state, '', location.pathname + location.search)
    void enter({ code })
  }, [])
  // The person may have signed in again in another tab, and then reloaded this page. Without
  // `return`, a person who is signed in can add a credential to the session.
  useEffect(() => {
    if (signedIn.value && query.has('return') && !code && !failure) go(back, { replace: true })
  }, [signedIn.value])
  useEffect(() => {
    document.title = `${text.title} · ${document.documentElement.dataset['product'] ?? ''}`
  }, [])
  return (
    <main class="alone">
      <form
        class="card"
        onSubmit={(event) => {
          event.preventDefault()
          void enter({ credential: key.trim() })
        }}
      >
        <div class="body stack">
          <h1>
            {text.title} · {document.documentElement.dataset['product']}
          </h1>
          {failure && <Notice tone="bad">{failureText(failure)}</Notice>}
          {ways && !ways.available && <Notice tone="warn">{text.notEncrypted}</Notice>}
          {code && <p role="status">{text.link}</p>}
          {ways?.oidc && (
            <>
              <a
                class="button primary"
                href={`${ways.oidc.start_path}?return=${encodeURIComponent(back)}`}
                target="_self"
              >
                {text.with(ways.oidc.name)}
              </a>
              <p class="soft small">{text.or}</p>
            </>
          )}
          <TextField
            label={text.key}
            hint={text.keyHint}
            fault={fault}
            type="password"
            autocomplete="current-password"
            required
            value={key}
            onValue={setKey}
          />
          <Button {...(!ways?.oidc && { kind: 'primary' })} submit>
            {text.submit}
          </Button>
        </div>
      </form>
    </main>
  )
}

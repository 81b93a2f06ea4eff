/** The page for signing in: with a key or token, a one-time link, or the provider of the company. */
import { useState } from 'preact/hooks'
import { ApiError } from '../../api/client.ts'
import { Button } from '../../design/button.tsx'
import { TextField } from '../../design/field.tsx'
import { go, place } from '../../router/router.ts'
import { loadSession, signIn } from '../../shell/session.ts'
import { signInText as text } from './text.ts'

/** Returns the address to show after signing in: a path of the console, or `/`. */
export function returnTarget(wanted: string | null): string {
  if (wanted === null || !/^\/(?![/\\])/.test(wanted) || wanted.startsWith('/sign-in')) return '/'
  return wanted
}

/** The page for signing in. */
export function SignIn() {
  const [key, setKey] = useState('')
  const [fault, setFault] = useState<string>()
  const submit = async (): Promise<void> => {
    setFault(undefined)
    try {
      await signIn(key.trim())
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      setFault(error.message)
      return
    }
    await loadSession()
    go(returnTarget(place.peek().query.get('return')), { replace: true })
  }
  return (
    <main class="alone">
      <form
        class="card"
        onSubmit={(event) => {
          event.preventDefault()
          void submit()
        }}
      >
        <div class="body stack">
          <h1>
            {text.title} · {document.documentElement.dataset['product']}
          </h1>
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
          <Button kind="primary" submit>
            {text.submit}
          </Button>
        </div>
      </form>
    </main>
  )
}

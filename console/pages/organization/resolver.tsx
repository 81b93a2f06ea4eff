/** The definition resolver of the organization, and the origins to which OAuth flows may return. */
import { useState } from 'preact/hooks'
import { type CallReply, call } from '../../api/client.ts'
import { useQuery } from '../../api/query.ts'
import { useRefusal } from '../../api/refusal.ts'
import { useSave } from '../../api/save.ts'
import { Button } from '../../design/button.tsx'
import { CopyCall } from '../../design/copy.tsx'
import { Checkbox, SelectField, TextArea, TextField } from '../../design/field.tsx'
import { showDone } from '../../design/notify.ts'
import { Badge, Failure, Show } from '../../design/states.tsx'
import { Time } from '../../design/time.tsx'
import { useLeaveQuestion, useUnsaved } from '../../form/unsaved.ts'
import { UntouchedForm } from '../../form/untouched.tsx'
import { Page } from '../../shell/page.tsx'
import { useOrganizationChanges } from './changes.ts'
import { resolverText as text } from './resolver-text.ts'

type Resolver = CallReply<'resolver.get'>

/** Returns the refusal of the last attempt, and a function that sends the form. */
function useSending(send: () => Promise<unknown>) {
  const { error, attempt, faultOf } = useRefusal()
  const submit = async (): Promise<void> => {
    await attempt(async () => {
      await send()
      showDone(text.saved)
    })
  }
  return { error, submit, faultOf }
}

function ResolverForm({ of, onSaved }: { readonly of: Resolver; readonly onSaved: () => void }) {
  const [isClient, setClient] = useState(of.source === 'client_resolver')
  const [url, setUrl] = useState(of.endpoint_url ?? '')
  const [token, setToken] = useState('')
  const [removeToken, setRemoveToken] = useState(false)
  const [timeout, setTimeoutMs] = useState(String(of.timeout_ms))
  const [revalidate, setRevalidate] = useState(String(of.revalidate_after_s))
  const [stale, setStale] = useState(String(of.stale_max_age_s))
  const [unavailable, setUnavailable] = useState(of.on_unavailable)
  const save = useSave(of)
  const values = [isClient, url, token, removeToken, timeout, revalidate, stale, unavailable]
  const { isChanged, saved } = useUnsaved(values)
  const { error, submit, faultOf } = useSending(async () => {
    await save('resolver.put', {
      source: isClient ? 'client_resolver' : 'stored',
      ...(url !== '' && { endpoint_url: url }),
      ...((removeToken || token !== '') && { auth: { token: removeToken ? '' : token } }),
      timeout_ms: Number(timeout),
      revalidate_after_s: Number(revalidate),
      stale_max_age_s: Number(stale),
      on_unavailable: unavailable,
    })
    saved()
    setToken('')
    setRemoveToken(false)
    onSaved()
  })
  return (
    <form
      class="stack narrow"
      onSubmit={(event) => {
        event.preventDefault()
        void submit()
      }}
    >
      {error && <Failure error={error} />}
      <SelectField
        label={text.source}
        choices={[
          { value: 'stored', label: text.stored },
          { value: 'client_resolver', label: text.client },
        ]}
        fault={faultOf('source')}
        value={isClient ? 'client_resolver' : 'stored'}
        onValue={(source) => setClient(source === 'client_resolver')}
      />
      <TextField
        label={text.url}
        hint={text.urlHint}
        placeholder="https://"
        spellcheck={false}
        required={isClient}
        fault={faultOf('endpoint_url')}
        value={url}
        onValue={setUrl}
      />
      <TextField
        label={text.token}
        type="password"
        autocomplete="new-password"
        disabled={removeToken}
        hint={
          <>
            {of.auth_configured ? (
              <Badge tone="good">{text.tokenSet}</Badge>
            ) : (
              <Badge>{text.tokenUnset}</Badge>
            )}{' '}
            {text.tokenHint}
          </>
        }
        fault={faultOf('auth.token')}
        value={token}
        onValue={setToken}
      />
      {of.auth_configured && (
        <Checkbox label={text.removeToken} checked={removeToken} onChecked={setRemoveToken} />
      )}
      <TextField
        label={text.timeout}
        type="number"
        min={1}
        max={30_000}
        fault={faultOf('timeout_ms')}
        value={timeout}
        onValue={setTimeoutMs}
      />
      <TextField
        label={text.revalidate}
        hint={text.revalidateHint}
        type="number"
        min={0}
        fault={faultOf('revalidate_after_s')}
        value={revalidate}
        onValue={setRevalidate}
      />
      <SelectField
        label={text.unavailable}
        choices={[
          { value: 'last_known_good', label: text.lastKnown },
          { value: 'fail', label: text.fail },
        ]}
        fault={faultOf('on_unavailable')}
        value={unavailable}
        onValue={(next) => setUnavailable(next as Resolver['on_unavailable'])}
      />
      <TextField
        label={text.stale}
        hint={text.staleHint}
        type="number"
        min={0}
        fault={faultOf('stale_max_age_s')}
        value={stale}
        onValue={setStale}
      />
      <div class="row">
        <Button kind="primary" submit disabled={!isChanged}>
          {text.save}
        </Button>
        <span class="small soft">
          {text.changed} <Time at={of.updated_at} />
        </span>
      </div>
    </form>
  )
}

function Origins() {
  const { state, reload } = useQuery('oauth_origins.get', {})
  const [typed, setTyped] = useState<string>()
  const isChanged = typed !== undefined && typed !== state.value.data?.origins.join('\n')
  useLeaveQuestion(isChanged)
  const { error, submit, faultOf } = useSending(async () => {
    const origins = (typed ?? '').split(/\s+/).filter((origin) => origin !== '')
    await call('oauth_origins.put', { origins })
    setTyped(undefined)
    reload()
  })
  return (
    <Show of={state.value} retry={reload}>
      {({ origins }) => (
        <form
          class="stack narrow"
          onSubmit={(event) => {
            event.preventDefault()
            void submit()
          }}
        >
          {error && <Failure error={error} />}
          <TextArea
            label={text.origins}
            hint={text.originsHint}
            placeholder="https://app.example.org"
            spellcheck={false}
            rows={3}
            fault={faultOf('origins')}
            value={typed ?? origins.join('\n')}
            onValue={setTyped}
          />
          <div>
            <Button submit disabled={!isChanged}>
              {text.save}
            </Button>
          </div>
        </form>
      )}
    </Show>
  )
}

export default function ResolverPage() {
  const { state, reload } = useQuery('resolver.get', {})
  useOrganizationChanges(['resolver'], reload)
  return (
    <Page title={text.title} actions={<CopyCall name="resolver.get" input={{}} />}>
      <p class="soft">{text.hint}</p>
      <Show of={state.value} retry={reload} lines={8}>
        {(known) => (
          <UntouchedForm record={known}>
            {(of, onSaved) => (
              <ResolverForm
                of={of}
                onSaved={() => {
                  onSaved()
                  reload()
                }}
              />
            )}
          </UntouchedForm>
        )}
      </Show>
      <h2>{text.oauth}</h2>
      <Origins />
    </Page>
  )
}

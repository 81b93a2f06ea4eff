/** Exclusive use of an environment: dialogs that acquire and release its lease. */
import { useState } from 'preact/hooks'
import { ApiError, call } from '../../api/client.ts'
import { Button } from '../../design/button.tsx'
import { Code } from '../../design/copy.tsx'
import { SelectField, TextField } from '../../design/field.tsx'
import { showDone } from '../../design/notify.ts'
import { Dialog, DialogActions } from '../../design/overlay.tsx'
import { Failure } from '../../design/states.tsx'
import { designText } from '../../design/text.ts'
import { environmentsText as text } from './text.ts'

interface Props {
  readonly project: string
  readonly id: string
  readonly onClose: () => void
}

/** Returns the refusal of the last action, and a function that runs an action. */
function useAction(): readonly [ApiError | undefined, (run: () => Promise<void>) => Promise<void>] {
  const [error, setError] = useState<ApiError>()
  return [
    error,
    async (run) => {
      setError(undefined)
      try {
        await run()
      } catch (fault) {
        if (!(fault instanceof ApiError)) throw fault
        setError(fault)
      }
    },
  ]
}

const PERIODS_MINUTES = [5, 15, 30, 60]
/** The dialog that acquires or extends the lease. Only this dialog shows the token. */
export function TakeDialog({ project, id, onClose }: Props) {
  const [minutes, setMinutes] = useState('15')
  const [token, setToken] = useState<string>()
  const [error, run] = useAction()
  const take = () =>
    run(async () => {
      const { lease } = await call('environment.acquire', {
        project,
        environment_id: id,
        ttl_seconds: Number(minutes) * 60,
        ...(token !== undefined && { lease_token: token }),
      })
      setToken(lease.token)
    })
  return (
    <Dialog title={text.takeTitle} onClose={onClose}>
      <p>{text.takeHint}</p>
      <SelectField
        label={text.takeFor}
        value={minutes}
        choices={PERIODS_MINUTES.map((count) => ({
          value: String(count),
          label: text.minutes(count),
        }))}
        onValue={setMinutes}
      />
      {error && <Failure error={error} />}
      {token !== undefined && (
        <div role="status" class="stack close">
          <h3>{text.token}</h3>
          <Code>{token}</Code>
          <p class="small soft">{text.tokenHint}</p>
        </div>
      )}
      <div class="actions">
        <Button onClick={onClose}>{token === undefined ? designText.cancel : text.close}</Button>
        {token === undefined && (
          <Button kind="primary" onClick={take}>
            {text.take}
          </Button>
        )}
      </div>
    </Dialog>
  )
}

/** The dialog that releases the lease. It asks for the token. */
export function ReleaseDialog({ project, id, onClose }: Props) {
  const [token, setToken] = useState('')
  const [error, run] = useAction()
  const release = () =>
    run(async () => {
      const lease_token = token.trim()
      await call('environment.release', { project, environment_id: id, lease_token })
      showDone(text.released)
      onClose()
    })
  const fault = error?.fields.find(({ field }) => field === 'lease_token')?.message
  return (
    <Dialog title={text.release} onClose={onClose}>
      <p>{text.releaseHint}</p>
      <TextField
        label={text.token}
        value={token}
        onValue={setToken}
        fault={fault}
        autocomplete="off"
        spellcheck={false}
      />
      {error && fault === undefined && <Failure error={error} />}
      <DialogActions
        onClose={onClose}
        action={text.release}
        disabled={token.trim() === ''}
        onClick={release}
      />
    </Dialog>
  )
}

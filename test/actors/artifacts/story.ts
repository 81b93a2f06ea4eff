/** Helpers for tests of artifacts: reservations, and artifacts in each state. */
import { defineActor } from '../../../actors/actor.ts'
import { artifactActor } from '../../../actors/artifacts/artifact.ts'
import type {
  ArtifactReservation,
  ArtifactState,
  CompleteUpload,
  LeaseFacts,
} from '../../../protocol/artifacts/commands.ts'
import { given, type Outcome, type Scene } from '../../support/given.ts'

export const actor = defineActor(artifactActor({ brand: 'Service' }))
export const ID = 'artifact_1'
export const SHA = 'ab'.repeat(32)
export const DOCX = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'

export const upload: ArtifactReservation = {
  organization: 'org_1',
  blob: `artifacts/prj_1/${ID}/a1`,
  owner: 'user_1',
}
export const lease: LeaseFacts = {
  job_id: 'job_1',
  attempt: 2,
  worker_session_id: 'wst_1',
  worker_instance_id: 'box',
  run_id: 'run_1',
  step_id: 'run_1:build',
  step_key: 'build',
}
export const bytes: CompleteUpload = {
  size_bytes: 5,
  sha256: SHA,
  name: 'reports/a.txt',
  mime_type: 'text/plain',
}

/** The state as tests read it, with the fields of all variants. */
export type State = Partial<Exclude<ArtifactState, { state: 'abandoned' }>> &
  Pick<ArtifactState, 'state'>
export const fresh = (): Scene<State | null> => given<State | null>(actor)
export const reserved = (more: Partial<ArtifactReservation> = {}): Outcome<State> =>
  fresh().when('artifact.reserve', { ...upload, ...more }) as Outcome<State>
export const ready = (more: Partial<ArtifactReservation> = {}, stored = bytes): Outcome<State> =>
  reserved(more).when('artifact.complete', {
    ...stored,
    ...(more.lease && { lease: { job_id: more.lease.job_id, attempt: more.lease.attempt } }),
  })
export const owner = { id: 'user_1', admin: false }
export const other = { id: 'user_2', admin: false }
export const admin = { id: 'user_3', admin: true }

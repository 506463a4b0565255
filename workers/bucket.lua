-- Close, charge, then grant up to n requests of one target: GCRA, all or part, with a share for each class; in one call.
--
-- KEYS[1]  one hash holds every bucket, so that a flush or an eviction takes all of it or nothing
-- ARGV     target, n, owed, close_us, max_close_us, grace_us, period_us, depth_us, own (which class asks, from 1),
--          then per class, the most urgent first: name, share_period_us (0: no share)
-- returns  {granted, wait_us until one more may be asked for, now_us}
--
-- `tat` is the theoretical arrival time (us): depth - (tat - now) is what is left. The server's own clock is read, so
-- workers need not agree on the time. `since` is the sentinel: a bucket that is not in the hash was never used since then
-- and is EMPTY at `since`; where the sentinel itself is gone (a wipe, a new server) it starts now. Reading a missing
-- bucket as full would hand out one extra burst after every FLUSHALL.
--
-- `due` is when a class has its next token by right. A class that is refused leaves a mark: how many it still wants, and
-- until when it keeps its place (`wanted`). As far as it is due that many are kept for it until it has asked again. What
-- nobody waits for anybody may have.
local key, target = KEYS[1], ARGV[1]
local n, owed = tonumber(ARGV[2]), tonumber(ARGV[3])
local close_us, max_close_us, grace_us = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local period, depth, own = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local fields = {'since', target .. '/closed', target .. '/tat'}
for i = 10, #ARGV, 2 do
  fields[#fields + 1] = target .. '/' .. ARGV[i] .. '/due'
  fields[#fields + 1] = target .. '/' .. ARGV[i] .. '/wanted'
  fields[#fields + 1] = target .. '/' .. ARGV[i] .. '/want'
end
local held = redis.call('HMGET', key, unpack(fields))

local changed = {}
local function set(index, number)
  changed[#changed + 1] = fields[index]
  changed[#changed + 1] = string.format('%.0f', number)
end

local since = tonumber(held[1])
if not since or since > now then
  since = now
  set(1, since)
end
-- An instant lies further ahead than `latest` only where the clock was set back (failover): it is written back, or it would
-- stay ahead of the clock for as long as that was set back.
local function instant(index, latest)
  local at = tonumber(held[index])
  if at and at > latest then
    set(index, math.ceil(latest))
    return latest
  end
  return at
end

local closed = instant(2, now + max_close_us) or 0
if close_us > 0 then
  closed = math.max(closed, now + math.min(close_us, max_close_us))
  set(2, closed)
end
local tat = math.max(instant(3, now + depth) or 0, since + depth, now) + owed * period
tat = math.min(tat, now + depth)

local classes = (#ARGV - 9) / 2
local shares = {}
for class = 1, classes do
  local share_period = tonumber(ARGV[2 * class + 9])
  local share = {at = 3 * class + 1, period = share_period, rights = 0}
  share.late = math.max(classes * share_period, grace_us)
  share.due = instant(share.at, now + share_period) or since
  if share_period > 0 and share.due <= now then
    share.rights = 1 + math.floor(math.min(now - share.due, share.late) / share_period)
  end
  shares[class] = share
end
local urgent, others = 0, 0
for class, share in ipairs(shares) do
  local wanted = tonumber(held[share.at + 1]) or 0
  if class ~= own and wanted > now and wanted <= now + 32 * period + 2 * grace_us then
    local kept = math.min(tonumber(held[share.at + 2]) or 0, share.rights)
    others = others + kept
    if class < own then
      urgent = urgent + kept
    end
  end
end

local mine, granted, wait = shares[own], 0, 0
if closed > now then
  wait = closed - now
elseif n > 0 then
  local left = math.floor((depth - (tat - now)) / period)
  granted = math.max(0, math.min(n, left - others), math.min(n, mine.rights, left - urgent))
end

tat = math.ceil(tat + granted * period)
if granted > 0 or owed > 0 then
  set(3, tat)
end
if granted > 0 and mine.period > 0 then
  -- Rights are saved up for as long as all other classes may have gone before.
  mine.due = math.max(mine.due, now - mine.late) + granted * mine.period
  mine.due = math.ceil(math.min(mine.due, now + mine.period))
  set(mine.at, mine.due)
end
if granted < n and closed <= now then
  local ahead = others
  if mine.period > 0 and mine.due <= now then
    ahead = urgent
  end
  wait = tat + (1 + ahead) * period - depth - now
  set(mine.at + 1, math.ceil(now + wait + grace_us))
  set(mine.at + 2, n - granted)
elseif granted > 0 then
  set(mine.at + 2, 0)
end
if #changed > 0 then
  redis.call('HSET', key, unpack(changed))
end
return {granted, math.ceil(wait), now}
